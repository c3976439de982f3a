#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <rankrun/rpc.h>
#include <rankrun/rpc/codec.h>

// Methods of RPC with typed arguments and results (codec.h).
//
//   rpc::Register("add", [](int a, int b) { return a + b; });
//   int sum = rpc::Call<int>("worker1", "add", 1, 2);
namespace rankrun::rpc {

namespace internal {

template <typename Result, typename... Args, size_t... kIndex>
auto Apply(const std::function<Result(Args...)>& function, const std::string& name,
           const Payload& payload, std::index_sequence<kIndex...>) {
  Json list = JsonIn(payload);
  if (!list.is_array() || list.size() != sizeof...(Args)) {
    throw DistError("the call has " + std::to_string(list.size()) + " arguments: " + name +
                    " wants " + std::to_string(sizeof...(Args)));
  }
  std::tuple<std::decay_t<Args>...> args{
      Converted("argument " + std::to_string(kIndex + 1) + " of " + name,
                [&] { return ValueReader<std::decay_t<Args>>::Read(list[kIndex], payload); })...};
  return std::apply(function, std::move(args));
}

template <typename Result, typename... Args>
void RegisterFunction(const std::string& name, std::function<Result(Args...)> function) {
  RegisterMaker(
      name, [name, function = std::move(function)](const WorkerInfo&, const Payload& payload) {
        constexpr auto kIndices = std::index_sequence_for<Args...>();
        if constexpr (std::is_void_v<Result>) {
          Apply<Result, Args...>(function, name, payload, kIndices);
          return OwnedValue{nullptr, [](const std::any&) { return Written(nullptr); }};
        } else if constexpr (std::is_constructible_v<Json, Result> ||
                             std::is_same_v<Result, TensorValue>) {
          auto value =
              std::make_shared<Result>(Apply<Result, Args...>(function, name, payload, kIndices));
          return OwnedValue{value, [](const std::any& kept) {
                              return Written(*std::any_cast<const std::shared_ptr<Result>&>(kept));
                            }};
        } else {
          return OwnedValue{
              std::make_shared<Result>(Apply<Result, Args...>(function, name, payload, kIndices))};
        }
      });
}

}  // namespace internal

// Registers a function as RegisterMethod does. Its results may also be kept for an RRef; those
// of types without a conversion only so.
template <typename Function>
void Register(const std::string& name, Function function) {
  internal::RegisterFunction(name, std::function(std::move(function)));
}

// Call methods of Register. A result that has another type is a DistError.
template <typename Result, typename... Args>
Result Call(const To& to, const std::string& method, const Args&... args) {
  Payload result = RpcSync(to, method, internal::ArgumentsOf(args...));
  if constexpr (!std::is_void_v<Result>) return internal::ResultIn<Result>(method, result);
}
template <typename Result, typename... Args>
Future<Result> CallAsync(const To& to, const std::string& method, const Args&... args) {
  return RpcAsync(to, method, internal::ArgumentsOf(args...))
      .Then([method](const Future<Payload>& result) -> Result {
        const Payload& payload = result.Wait();
        if constexpr (!std::is_void_v<Result>) return internal::ResultIn<Result>(method, payload);
      });
}
template <typename T, typename... Args>
RRef<T> CallRemote(const To& to, const std::string& method, const Args&... args) {
  return RRef<T>(Remote(to, method, internal::ArgumentsOf(args...)));
}

}  // namespace rankrun::rpc

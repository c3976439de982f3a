#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rankrun/c/own_store.h>
#include <rankrun/dist_error.h>
#include <rankrun/store_base.h>

#include "comm/c/c_guard.h"

struct rankrun_store_answer {
  std::string bytes;
};

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// The rest of an error is in the answer.
[[noreturn]] void Throw(rankrun_status status, const char* function,
                        const rankrun_store_answer& answer) {
  const std::string text = answer.bytes.empty()
                               ? std::string("the program's store: ") + function +
                                     " failed with status " + std::to_string(status)
                               : answer.bytes;
  if (status == RANKRUN_NETWORK) throw DistNetworkError(text);
  if (status == RANKRUN_INVALID) throw DistError(text);
  throw DistStoreError(text);
}

rankrun_bytes BytesOf(std::string_view text) {
  return {const_cast<char*>(text.data()), text.size()};
}

std::vector<const char*> NamesOf(const std::vector<std::string>& keys) {
  std::vector<const char*> names;
  names.reserve(keys.size());
  for (const std::string& key : keys) names.push_back(key.c_str());
  return names;
}

class OwnStore final : public Store {
 public:
  OwnStore(const rankrun_store_functions& functions, milliseconds timeout)
      : Store(timeout), functions_(functions) {}
  OwnStore(const OwnStore&) = delete;
  OwnStore& operator=(const OwnStore&) = delete;
  ~OwnStore() override {
    if (functions_.destroy != nullptr) functions_.destroy(functions_.context);
  }

  void Set(std::string_view key, std::string_view value) override {
    const rankrun_bytes bytes = BytesOf(value);
    Call("set", functions_.set, std::string(key).c_str(), &bytes);
  }

  std::string Get(std::string_view key, Timeout limit) override {
    return Call("get", functions_.get, std::string(key).c_str(), Limit(limit));
  }

  int64_t Add(std::string_view key, int64_t delta) override {
    int64_t sum = 0;
    Call("add", functions_.add, std::string(key).c_str(), delta, &sum);
    return sum;
  }

  bool Check(const std::vector<std::string>& keys) override {
    int exist = 0;
    Call("check", functions_.check, NamesOf(keys).data(), keys.size(), &exist);
    return exist != 0;
  }

  void Wait(const std::vector<std::string>& keys, Timeout limit) override {
    Call("wait", functions_.wait, NamesOf(keys).data(), keys.size(), Limit(limit));
  }

  CompareSetResult CompareSet(std::string_view key, std::string_view expected,
                              std::string_view desired) override {
    const rankrun_bytes before = BytesOf(expected), after = BytesOf(desired);
    int swapped = 0;
    std::string value = Call("compare_set", functions_.compare_set, std::string(key).c_str(),
                             &before, &after, &swapped);
    return {std::move(value), swapped != 0};
  }

  bool DeleteKey(std::string_view key) override {
    int existed = 0;
    Call("remove", functions_.remove, std::string(key).c_str(), &existed);
    return existed != 0;
  }

  int64_t NumKeys() override {
    int64_t count = 0;
    Call("num_keys", functions_.num_keys, &count);
    return count;
  }

 private:
  // Returns what the function has answered.
  template <typename Function, typename... Arguments>
  std::string Call(const char* name, Function* function, Arguments... arguments) {
    rankrun_store_answer answer;
    const rankrun_status status = function(functions_.context, arguments..., &answer);
    if (status != RANKRUN_OK) Throw(status, name, answer);
    return std::move(answer.bytes);
  }

  int64_t Limit(Timeout limit) const { return limit.value_or(timeout()).count(); }

  const rankrun_store_functions functions_;
};

void CheckFunctions(const rankrun_store_functions& functions) {
  const std::pair<const char*, bool> required[] = {
      {"set", functions.set != nullptr},       {"get", functions.get != nullptr},
      {"add", functions.add != nullptr},       {"check", functions.check != nullptr},
      {"wait", functions.wait != nullptr},     {"compare_set", functions.compare_set != nullptr},
      {"remove", functions.remove != nullptr}, {"num_keys", functions.num_keys != nullptr}};
  for (const auto& [name, is_there] : required) {
    if (!is_there) ThrowInvalid(std::string("functions.") + name + " is NULL");
  }
}

}  // namespace
}  // namespace rankrun::comm

using rankrun::comm::CheckFunctions;
using rankrun::comm::Clear;
using rankrun::comm::Guarded;
using rankrun::comm::NotNull;
using rankrun::comm::OptionsOf;
using rankrun::comm::OwnStore;
using rankrun::comm::TimeoutOf;
using rankrun::comm::ViewOf;

extern "C" {

rankrun_status rankrun_store_answer_set(rankrun_store_answer* answer, const void* data,
                                        size_t size) {
  return Guarded([=] { NotNull(answer, "answer").bytes = ViewOf(data, size, "data"); });
}

rankrun_status rankrun_own_store(const rankrun_store_functions* functions, int64_t timeout_ms,
                                 rankrun_store** store) {
  return Guarded([=] {
    Clear(store, "store");
    NotNull(functions, "functions");
    auto wanted = OptionsOf(functions, rankrun_store_functions{});
    CheckFunctions(wanted);
    auto timeout = TimeoutOf(timeout_ms).value_or(std::chrono::seconds(300));
    *store = new rankrun_store{std::make_shared<OwnStore>(wanted, timeout)};
  });
}

}  // extern "C"

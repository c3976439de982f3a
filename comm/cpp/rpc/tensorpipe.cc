// The backend "TENSORPIPE" of RPC: all workers of a context, connected by TCP.

#include "comm/cpp/rpc/tensorpipe.h"

#include <thread>
#include <utility>

#include <rankrun/context.h>
#include <rankrun/objects.h>

#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/cpp/rpc/methods.h"
#include "comm/group/group.h"
#include "comm/group/process_group_access.h"
#include "comm/rpc/agent.h"
#include "comm/world/group_table.h"

namespace rankrun::rpc {
namespace {

namespace core = comm::rpc;
using std::chrono::milliseconds;
using Kind = core::Outcome::Kind;

constexpr char kContext[] = "rpc";
// Limit of steps that the program has given none.
constexpr milliseconds kUnlimited = std::chrono::hours(24 * 365);
constexpr milliseconds kBeforeNextLook{1};

[[noreturn]] void ThrowInvalid(const std::string& message) {
  comm::Throw({ErrorCode::kInvalid, message});
}

milliseconds LimitOf(milliseconds limit) {
  return limit > milliseconds(0) ? comm::Bounded(limit) : kUnlimited;
}

std::vector<std::string> TextsOfAll(ProcessGroup& world, const std::string& text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  std::vector<std::string> texts;
  for (const Object& each : AllGatherObject(world, Object(bytes, bytes + text.size()))) {
    texts.emplace_back(reinterpret_cast<const char*>(each.data()), each.size());
  }
  return texts;
}

// Throws the first error of all workers; `own`: that of this one, or empty.
void ThrowFirstError(ProcessGroup& world, const std::string& own) {
  for (const std::string& each : TextsOfAll(world, own)) {
    if (!each.empty()) comm::Throw({ErrorCode::kSystem, each});
  }
}

std::exception_ptr ErrorOf(const std::string& callee, const std::string& method,
                           const core::Outcome& outcome) {
  const std::string text = "call of " + method + " on worker " + callee + ": " + outcome.text;
  switch (outcome.kind) {
    case Kind::kReply:
      return nullptr;
    case Kind::kRaised:
      return std::make_exception_ptr(RemoteError(text));
    case Kind::kUnknown:
      return std::make_exception_ptr(UnknownMethodError(text));
    case Kind::kTimeout:
      return std::make_exception_ptr(DistTimeoutError(text));
    case Kind::kLost:
    case Kind::kEnded:
      return std::make_exception_ptr(DistNetworkError(text));
  }
  __builtin_unreachable();
}

class TensorPipeAgent final : public RpcAgent {
 public:
  TensorPipeAgent(std::unique_ptr<Context> context, std::unique_ptr<core::Agent> agent)
      : context_(std::move(context)), agent_(std::move(agent)) {}

  WorkerInfo GetWorkerInfo() const override { return InfoOf(agent_->self()); }
  std::vector<WorkerInfo> GetWorkerInfos() const override {
    std::vector<WorkerInfo> all;
    for (int id = 0; id < agent_->roster().size(); ++id) all.push_back(InfoOf(id));
    return all;
  }

  Payload CallAndWait(const WorkerInfo& callee, const std::string& method, Payload arguments,
                      milliseconds limit) override {
    auto outcome = agent_->CallAndWait(callee.id, method, MessageOf(std::move(arguments)), limit);
    if (auto why = ErrorOf(callee.name, method, outcome)) std::rethrow_exception(why);
    return PayloadOf(std::move(outcome.reply));
  }

  Future<Payload> Call(const WorkerInfo& callee, const std::string& method, Payload arguments,
                       milliseconds limit) override {
    Promise<Payload> promise;
    agent_->Call(callee.id, method, MessageOf(std::move(arguments)), limit,
                 [promise, name = callee.name, method](core::Outcome outcome) {
                   if (auto why = ErrorOf(name, method, outcome)) {
                     promise.SetException(why);
                   } else {
                     promise.SetValue(PayloadOf(std::move(outcome.reply)));
                   }
                 });
    return promise.future();
  }

  // Two looks in a row find no call under way and no call begun in between.
  void Join(milliseconds limit) override {
    ProcessGroup& world = context_->World();
    TimePoint deadline = MonotonicClock().Now() + LimitOf(limit);
    int64_t begun_before = -1;
    for (;;) {
      std::vector<int64_t> sums{static_cast<int64_t>(agent_->unfinished()),
                                static_cast<int64_t>(agent_->begun())};
      world.AllReduce(sums, ReduceOp::kSum, CallOptions{comm::TimeLeft(deadline)});
      if (sums[0] == 0 && sums[1] == begun_before) return;
      if (MonotonicClock().Now() >= deadline) {
        comm::Throw({ErrorCode::kTimeout, std::to_string(sums[0]) +
                                              " calls and methods have not ended after " +
                                              std::to_string(limit.count()) + " ms"});
      }
      begun_before = sums[0] == 0 ? sums[1] : -1;
      if (sums[0] != 0) std::this_thread::sleep_for(kBeforeNextLook);
    }
  }

  void Shutdown() override { agent_->Close(); }
  void SetLossHandler(std::function<void(int worker)> lost) override {
    agent_->SetLossHandler(std::move(lost));
  }

  std::map<std::string, std::string> GetMetrics() const override {
    const core::Threads& threads = agent_->threads();
    return {{"agent.thread_pool_size", std::to_string(threads.size())},
            {"agent.num_idle_threads", std::to_string(threads.resting())},
            {"agent.client_active_calls", std::to_string(agent_->open_calls())},
            {"agent.server_active_calls", std::to_string(agent_->running_methods())}};
  }

 private:
  WorkerInfo InfoOf(int id) const { return {agent_->roster().NameOf(id), id}; }

  const std::unique_ptr<Context> context_;
  const std::unique_ptr<core::Agent> agent_;  // ends before the context
};

std::unique_ptr<RpcAgent> Connect(std::shared_ptr<Store> store, const std::string& name, int rank,
                                  std::optional<int> world_size,
                                  const TensorPipeRpcBackendOptions& options) {
  if (options.num_worker_threads < 1) {
    ThrowInvalid("num_worker_threads is " + std::to_string(options.num_worker_threads) +
                 ": want at least 1");
  }
  milliseconds limit = LimitOf(options.rpc_timeout);
  auto context =
      std::make_unique<Context>(kContext, InitOptions{.timeout = limit,
                                                      .init_method = options.init_method,
                                                      .rank = rank,
                                                      .world_size = world_size.value_or(-1),
                                                      .store = std::move(store)});
  ProcessGroup& world = context->World();
  auto roster = comm::Unwrap(core::Roster::Make(TextsOfAll(world, name)));
  auto connections = comm::Unwrap(comm::GroupTable::Of(world).ConnectAgain("rpc", limit));
  auto agent = core::Agent::Make({.roster = std::move(roster),
                                  .self = world.group_rank(),
                                  .methods = options.num_worker_threads,
                                  .deaths = comm::GroupOf(world).identity().deaths},
                                 std::move(connections), AllMethods());
  ThrowFirstError(world, agent ? "" : "worker " + name + ": " + agent.error().message);
  return std::make_unique<TensorPipeAgent>(std::move(context), *std::move(agent));
}

// Returns the value of an option; throws if it has another type.
template <typename T>
T ValueOf(const std::string& name, const std::any& value, const char* wanted) {
  if (const T* found = std::any_cast<T>(&value)) return *found;
  ThrowInvalid("the option " + name + " of TENSORPIPE has another type: want " + wanted);
}

std::shared_ptr<RpcBackendOptions> ConstructOptions(milliseconds rpc_timeout,
                                                    const std::string& init_method,
                                                    const OptionMap& given) {
  auto options = std::make_shared<TensorPipeRpcBackendOptions>();
  options->rpc_timeout = rpc_timeout;
  options->init_method = init_method;
  for (const auto& [name, value] : given) {
    if (name == "num_worker_threads") {
      options->num_worker_threads = ValueOf<int>(name, value, "int");
    } else {
      ThrowInvalid("TENSORPIPE has no option " + name + ": want num_worker_threads");
    }
  }
  return options;
}

}  // namespace

BackendHandlers TensorPipeHandlers() {
  return {.construct_options = ConstructOptions,
          .init = [](std::shared_ptr<Store> store, const std::string& name, int rank,
                     std::optional<int> world_size, std::shared_ptr<RpcBackendOptions> options) {
            auto own = std::dynamic_pointer_cast<TensorPipeRpcBackendOptions>(options);
            if (own == nullptr) {
              ThrowInvalid(
                  "the options are not those of TENSORPIPE: want "
                  "TensorPipeRpcBackendOptions");
            }
            return Connect(std::move(store), name, rank, world_size, *own);
          }};
}

}  // namespace rankrun::rpc

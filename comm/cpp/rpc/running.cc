#include "comm/cpp/rpc/running.h"

#include <random>
#include <utility>

#include "comm/core/throw.h"
#include "comm/core/wait_hook.h"

namespace rankrun::rpc {
namespace {

using std::chrono::milliseconds;

thread_local int methods_of_this_thread = 0;

constinit comm::PerProcess<RunningState> states;

// In a fork, the parent's state does not change any more.
[[noreturn]] void ThrowNotRunning() NO_THREAD_SAFETY_ANALYSIS {
  const RunningState* parent = states.inherited();
  if (parent == nullptr || parent->running == nullptr) {
    ThrowInvalid("RPC is not running: call rpc::Init() first");
  }
  const std::string worker = "worker " + std::to_string(parent->running->self);
  comm::Throw(parent->home.ErrorOfFork(worker, "its RPC"));
}

uint64_t RandomNumber() {
  std::random_device source;
  return uint64_t{source()} << 32;
}

uint64_t NextGeneration() {
  static std::atomic<uint64_t> last = 0;
  return last.fetch_add(1) + 1;
}

}  // namespace

Running::Running(std::unique_ptr<RpcAgent> made, milliseconds limit)
    : generation(NextGeneration()),
      agent(std::move(made)),
      self(agent->GetWorkerInfo().id),
      timeout(limit),
      last_value(RandomNumber()),
      last_hold(RandomNumber()) {
  agent->SetLossHandler([this](int worker) { values.DropAllOf(worker); });
}

milliseconds Running::LimitOf(Timeout given) const {
  return given ? CheckedTimeout(*given) : timeout.load();
}

RunningState& RunningState::OfThisProcess() { return states.Get(); }

void RunningState::GiveUpStart() {
  MutexLock lock(mutex);
  if (starter != std::this_thread::get_id()) return;
  starter = {};
  changed.NotifyAll();
}

RunningUse::RunningUse() {
  RunningState& state = RunningState::OfThisProcess();
  MutexLock lock(state.mutex);
  // A worker whose Init has returned may call a method here before ours has.
  while (MethodScope::IsIn() && state.running == nullptr && state.starter != std::thread::id()) {
    comm::HookedWait wait;  // another method may run meanwhile
    state.changed.Wait(state.mutex);
  }
  if (state.running == nullptr) ThrowNotRunning();
  running_ = state.running.get();
  state.users += 1;
}

std::unique_ptr<RunningUse> RunningUse::Of(uint64_t generation) {
  RunningState& state = RunningState::OfThisProcess();
  MutexLock lock(state.mutex);
  Running* running = state.running.get();
  if (running == nullptr || running->generation != generation) return nullptr;
  state.users += 1;
  return std::unique_ptr<RunningUse>(new RunningUse(running));
}

RunningUse::~RunningUse() {
  RunningState& state = RunningState::OfThisProcess();
  MutexLock lock(state.mutex);
  state.users -= 1;
  if (state.users == 0) state.changed.NotifyAll();
}

MethodScope::MethodScope() { methods_of_this_thread += 1; }
MethodScope::~MethodScope() { methods_of_this_thread -= 1; }
bool MethodScope::IsIn() { return methods_of_this_thread > 0; }

void ThrowInvalid(const std::string& message) { comm::Throw({ErrorCode::kInvalid, message}); }

milliseconds CheckedTimeout(milliseconds timeout) {
  if (timeout >= milliseconds(0)) return timeout;
  ThrowInvalid("timeout is " + std::to_string(timeout.count()) +
               " ms: want 0, which is none, or more");
}

}  // namespace rankrun::rpc

#include <mutex>
#include <utility>

#include <rankrun/rpc.h>
#include <rankrun/rpc/backend.h>

#include "comm/core/throw.h"
#include "comm/cpp/rpc/built_in.h"
#include "comm/cpp/rpc/methods.h"
#include "comm/cpp/rpc/references.h"
#include "comm/cpp/rpc/running.h"

namespace rankrun::rpc {

RemoteError::~RemoteError() = default;
UnknownMethodError::~UnknownMethodError() = default;

namespace {

using std::chrono::milliseconds;

std::unique_ptr<Running> Start(const std::string& name, const Options& options) {
  static std::once_flag registered;
  std::call_once(registered, RegisterReferenceMethods);
  BackendType backend = FindBackend(options.backend);
  auto of_backend = options.backend_options;
  if (of_backend == nullptr) of_backend = ConstructRpcBackendOptions(backend);
  CheckedTimeout(of_backend->rpc_timeout);
  std::optional<int> world_size = options.world_size;
  if (options.is_dynamic) {
    if (options.world_size != -1) {
      ThrowInvalid("world_size is " + std::to_string(options.world_size) +
                   ": a dynamic group has none");
    }
    world_size.reset();
  }
  auto agent = MakeAgent(backend, options.store, name, options.rank, world_size, of_backend);
  return std::make_unique<Running>(std::move(agent), of_backend->rpc_timeout);
}

// Ends RPC of this process.
void End() {
  RunningUse()->agent->Shutdown();  // ends the waits of threads that use it
  RunningState& state = RunningState::OfThisProcess();
  std::unique_ptr<Running> ended;
  {
    MutexLock lock(state.mutex);
    ended = std::move(state.running);
    while (state.users > 0) state.changed.Wait(state.mutex);
  }
  ended = nullptr;  // waits for methods that run
}

}  // namespace

void Init(const std::string& name, const Options& options) {
  RunningState& state = RunningState::OfThisProcess();
  {
    MutexLock lock(state.mutex);
    if (state.running != nullptr || state.is_starting) {
      ThrowInvalid("rpc::Init: RPC is running: call rpc::Shutdown() first");
    }
    state.is_starting = true;
    state.starter = std::this_thread::get_id();
  }
  std::unique_ptr<Running> made;
  std::exception_ptr failure;
  try {
    made = Start(name, options);
  } catch (...) {
    failure = std::current_exception();
  }
  MutexLock lock(state.mutex);
  state.is_starting = false;
  state.starter = {};
  state.running = std::move(made);
  state.changed.NotifyAll();
  lock.Unlock();
  if (failure) std::rethrow_exception(failure);
}

bool Initialized() {
  RunningState& state = RunningState::OfThisProcess();
  MutexLock lock(state.mutex);
  return state.running != nullptr;
}

void Shutdown(bool graceful, milliseconds timeout) {
  if (MethodScope::IsIn()) ThrowInvalid("rpc::Shutdown: want no call in a method");
  CheckedTimeout(timeout);
  RunningState& state = RunningState::OfThisProcess();
  std::exception_ptr failure;
  {
    RunningUse running;
    MutexLock lock(state.mutex);
    if (std::exchange(state.is_ending, true)) {
      ThrowInvalid("rpc::Shutdown: another thread is in it");
    }
    lock.Unlock();
    try {
      if (graceful) running->agent->Join(timeout);
    } catch (const DistError&) {
      failure = std::current_exception();
    }
  }
  End();
  MutexLock lock(state.mutex);
  state.is_ending = false;
  lock.Unlock();
  if (failure) std::rethrow_exception(failure);
}

WorkerInfo GetWorkerInfo() { return RunningUse()->agent->GetWorkerInfo(); }

WorkerInfo GetWorkerInfo(const std::string& name) {
  RunningUse running;
  return running->agent->Find(name);
}

std::vector<WorkerInfo> GetWorkerInfos() { return RunningUse()->agent->GetWorkerInfos(); }

milliseconds GetRpcTimeout() { return RunningUse()->timeout.load(); }
void SetRpcTimeout(milliseconds timeout) { RunningUse()->timeout = CheckedTimeout(timeout); }

Payload RpcSync(const To& to, const std::string& method, Payload arguments, Timeout timeout) {
  RunningUse running;
  WorkerInfo callee = running->agent->Find(to);
  milliseconds limit = running->LimitOf(timeout);
  CheckSize(arguments);
  Payload request = Encode(*running, std::move(arguments), {callee});
  Payload result = running->agent->CallAndWait(callee, method, std::move(request), limit);
  return Decode(*running, std::move(result), callee.id);
}

Future<Payload> RpcAsync(const To& to, const std::string& method, Payload arguments,
                         Timeout timeout) {
  RunningUse running;
  WorkerInfo callee = running->agent->Find(to);
  milliseconds limit = running->LimitOf(timeout);
  CheckSize(arguments);
  Payload request = Encode(*running, std::move(arguments), {callee});
  return running->agent->Call(callee, method, std::move(request), limit)
      .Then([generation = running->generation, sender = callee.id](const Future<Payload>& result) {
        Payload payload = result.Wait();
        auto use = RunningUse::Of(generation);
        if (use == nullptr) {
          throw DistNetworkError("RPC has ended before the reply of the call was read");
        }
        return Decode(**use, std::move(payload), sender);
      });
}

}  // namespace rankrun::rpc

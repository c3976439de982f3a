#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <rankrun/diagnosis/operation_hooks.h>

#include "base/mutex.h"

namespace rankrun::comm {

// Functions of one OperationHooks.
// Thread: any.
class HookEntry {
 public:
  explicit HookEntry(OperationCallbacks callbacks) : callbacks_(std::move(callbacks)) {}

  void Start(const OperationInfo& operation) { Call(&OperationCallbacks::on_start, operation); }
  void End(const OperationInfo& operation) { Call(&OperationCallbacks::on_end, operation); }
  // Returns whether this is in a process that was forked after the entry was made, in
  // which threads of calls do not exist. Then no call follows, and the functions stay.
  bool LeaveIfForked();
  // Waits for the calls; none follows. Destroys the functions. Aborts if one of them
  // calls it.
  void Remove();

 private:
  using Hook = std::function<void(const OperationInfo&)> OperationCallbacks::*;
  void Call(Hook hook, const OperationInfo& operation);

  const pid_t pid_ = getpid();
  std::atomic<bool> is_left_ = false;  // removed in a forked process
  OperationCallbacks callbacks_;       // unchanged until is_removed_ and no call is left
  Mutex mutex_;
  CondVar returned_;
  int calls_ GUARDED_BY(mutex_) = 0;
  bool is_removed_ GUARDED_BY(mutex_) = false;
};

// An operation, and the hooks that were there when it started.
class HookedOperation {
 public:
  // Calls on_start. Returns null if there is no hook, or if a hook starts the operation.
  static std::unique_ptr<HookedOperation> Start(OperationInfo operation);
  // Calls on_end. `peer` replaces that of the start unless it is -1.
  void End(bool has_succeeded, int peer);

 private:
  HookedOperation(OperationInfo operation, std::vector<std::shared_ptr<HookEntry>> hooks)
      : operation_(std::move(operation)), hooks_(std::move(hooks)) {}

  OperationInfo operation_;
  const std::vector<std::shared_ptr<HookEntry>> hooks_;
};

// Returns whether this thread is in a hook.
bool IsInHook();

void AddHooks(const std::shared_ptr<HookEntry>& entry);
void RemoveHooks(const std::shared_ptr<HookEntry>& entry);

}  // namespace rankrun::comm

#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <rankrun/operation_hooks.h>

#include "base/mutex.h"

namespace rankrun::comm {

// Functions of one OperationHooks.
// Thread: any.
class HookEntry {
 public:
  explicit HookEntry(OperationCallbacks callbacks) : callbacks_(std::move(callbacks)) {}

  void Start(const OperationInfo& operation) { Call(callbacks_.on_start, operation); }
  void End(const OperationInfo& operation) { Call(callbacks_.on_end, operation); }
  // Waits for the calls; none follows.
  void Remove();

 private:
  void Call(const std::function<void(const OperationInfo&)>& hook, const OperationInfo& operation);

  const OperationCallbacks callbacks_;
  Mutex mutex_;
  CondVar returned_;
  int calls_ GUARDED_BY(mutex_) = 0;
  bool is_removed_ GUARDED_BY(mutex_) = false;
};

// An operation, and the hooks that were there when it started.
class HookedOperation {
 public:
  // Calls on_start. Returns null if there is no hook.
  static std::unique_ptr<HookedOperation> Start(OperationInfo operation);
  // Calls on_end. `peer` replaces that of the start unless it is -1.
  void End(bool has_succeeded, int peer);

 private:
  HookedOperation(OperationInfo operation, std::vector<std::shared_ptr<HookEntry>> hooks)
      : operation_(std::move(operation)), hooks_(std::move(hooks)) {}

  OperationInfo operation_;
  const std::vector<std::shared_ptr<HookEntry>> hooks_;
};

void AddHooks(const std::shared_ptr<HookEntry>& entry);
void RemoveHooks(const std::shared_ptr<HookEntry>& entry);

}  // namespace rankrun::comm

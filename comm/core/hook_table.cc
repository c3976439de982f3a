#include "comm/core/hook_table.h"

#include <atomic>
#include <exception>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "comm/core/operation_events.h"

namespace rankrun::comm {
namespace {

using Entries = std::vector<std::shared_ptr<HookEntry>>;

struct Table {
  Mutex mutex;
  Entries entries GUARDED_BY(mutex);
};

// Never destroyed, because a thread may work until the process ends.
Table& TheTable() {
  static auto* const kTable = new Table;
  return *kTable;
}

Entries AllEntries() {
  Table& table = TheTable();
  MutexLock lock(table.mutex);
  return table.entries;
}

// Entry whose hook runs in this thread, from its construction until its destruction.
class RunningHook {
 public:
  explicit RunningHook(const HookEntry& entry) : entry_(entry), outer_(innermost) {
    innermost = this;
  }
  RunningHook(const RunningHook&) = delete;
  RunningHook& operator=(const RunningHook&) = delete;
  ~RunningHook() { innermost = outer_; }

  static bool IsThere() { return innermost != nullptr; }
  static bool Has(const HookEntry& entry) {
    const RunningHook* hook = innermost;
    while (hook != nullptr && &hook->entry_ != &entry) hook = hook->outer_;
    return hook != nullptr;
  }

 private:
  static thread_local const RunningHook* innermost;

  const HookEntry& entry_;
  const RunningHook* const outer_;  // an operation may end in a hook
};

thread_local const RunningHook* RunningHook::innermost = nullptr;

}  // namespace

bool IsInHook() { return RunningHook::IsThere(); }

void HookEntry::Call(Hook hook, const OperationInfo& operation) {
  if (is_left_.load()) return;
  {
    MutexLock lock(mutex_);
    if (is_removed_) return;
    calls_ += 1;
  }
  const RunningHook running(*this);
  try {
    if (const auto& function = callbacks_.*hook) function(operation);
  } catch (const std::exception& error) {
    LogWarn("a hook of " + operation.name + " has thrown: " + error.what());
  } catch (...) {
    LogWarn("a hook of " + operation.name + " has thrown");
  }
  MutexLock lock(mutex_);
  calls_ -= 1;
  if (calls_ == 0) returned_.NotifyAll();
}

bool HookEntry::LeaveIfForked() {
  if (getpid() == pid_) return false;
  is_left_.store(true);
  return true;
}

void HookEntry::Remove() {
  RANKRUN_CHECK(!RunningHook::Has(*this), "a hook must not destroy its own OperationHooks");
  OperationCallbacks removed;  // destroyed without the lock
  MutexLock lock(mutex_);
  is_removed_ = true;
  while (calls_ > 0) returned_.Wait(mutex_);
  std::swap(removed, callbacks_);
}

std::unique_ptr<HookedOperation> HookedOperation::Start(OperationInfo operation) {
  static std::atomic<uint64_t> operations = 0;
  if (IsInHook()) return nullptr;
  Entries hooks = AllEntries();
  if (hooks.empty()) return nullptr;
  operation.id = operations.fetch_add(1) + 1;
  operation.started = std::chrono::steady_clock::now();
  std::unique_ptr<HookedOperation> started(
      new HookedOperation(std::move(operation), std::move(hooks)));
  for (const auto& hook : started->hooks_) hook->Start(started->operation_);
  return started;
}

void HookedOperation::End(bool has_succeeded, int peer) {
  operation_.ended = std::chrono::steady_clock::now();
  operation_.has_succeeded = has_succeeded;
  if (peer >= 0) operation_.peer = peer;
  for (const auto& hook : hooks_) hook->End(operation_);
}

void AddHooks(const std::shared_ptr<HookEntry>& entry) {
  Table& table = TheTable();
  MutexLock lock(table.mutex);
  table.entries.push_back(entry);
  ObserveOperations(Observer::kHooks, true);
}

void RemoveHooks(const std::shared_ptr<HookEntry>& entry) {
  if (entry->LeaveIfForked()) return;
  Table& table = TheTable();
  {
    MutexLock lock(table.mutex);
    std::erase(table.entries, entry);
    ObserveOperations(Observer::kHooks, !table.entries.empty());
  }
  entry->Remove();
}

}  // namespace rankrun::comm

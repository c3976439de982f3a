#include "comm/core/hook_table.h"

#include <atomic>
#include <exception>
#include <string>
#include <utility>

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

}  // namespace

void HookEntry::Call(const std::function<void(const OperationInfo&)>& hook,
                     const OperationInfo& operation) {
  if (!hook) return;
  {
    MutexLock lock(mutex_);
    if (is_removed_) return;
    calls_ += 1;
  }
  try {
    hook(operation);
  } catch (const std::exception& error) {
    LogWarn("a hook of " + operation.name + " has thrown: " + error.what());
  } catch (...) {
    LogWarn("a hook of " + operation.name + " has thrown");
  }
  MutexLock lock(mutex_);
  calls_ -= 1;
  if (calls_ == 0) returned_.NotifyAll();
}

void HookEntry::Remove() {
  MutexLock lock(mutex_);
  is_removed_ = true;
  while (calls_ > 0) returned_.Wait(mutex_);
}

std::unique_ptr<HookedOperation> HookedOperation::Start(OperationInfo operation) {
  static std::atomic<uint64_t> operations = 0;
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
  Table& table = TheTable();
  {
    MutexLock lock(table.mutex);
    std::erase(table.entries, entry);
    ObserveOperations(Observer::kHooks, !table.entries.empty());
  }
  entry->Remove();
}

}  // namespace rankrun::comm

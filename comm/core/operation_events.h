#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/trace/trace_format.h"
#include "comm/core/operation.h"

// Begin and end of each operation, for the trace of the process and for the hooks of
// the program. Without both, Begin and End are a branch each.
namespace rankrun::comm {

class HookedOperation;

enum class Observer : uint8_t { kTrace = 1, kHooks = 2 };
namespace internal {
inline std::atomic<uint8_t> observers = 0;  // bits of Observer
}
inline bool AreOperationsObserved() {
  return internal::observers.load(std::memory_order_relaxed) != 0;
}
void ObserveOperations(Observer observer, bool is_there);

// Opens the trace of this process in the folder of RANKRUN_TRACE, once. Without `rank`,
// RANK counts; with neither, a later call opens it. A failure is a warning.
void OpenTrace(std::optional<int> rank);

// An operation that has begun. Copies mean the same operation, which one of them ends.
// Without destructor, so that it lies in registers.
class OperationEvent {
 public:
  OperationEvent() = default;
  OperationEvent(TraceRecord* record, HookedOperation* hooked) : record_(record), hooked_(hooked) {}

  bool is_observed() const { return record_ != nullptr || hooked_ != nullptr; }
  // To be called once. `peer`: the global rank of the sender of a message that was
  // received from any rank; -1: the peer is that of the beginning.
  void End(bool has_succeeded, int peer = -1) const {
    if (is_observed()) [[unlikely]]
      EndObserved(has_succeeded, peer);
  }

 private:
  void EndObserved(bool has_succeeded, int peer) const;

  TraceRecord* record_ = nullptr;      // null: not traced
  HookedOperation* hooked_ = nullptr;  // owned until End; null: no hooks
};

// Begins the operations of one process group.
// Thread: any.
class OperationEvents {
 public:
  // `key` is the same on all ranks, and differs from that of other groups.
  OperationEvents(std::string name, std::string_view key, int size, int global_rank);

  OperationEvent Begin(const Operation& operation) const {
    if (!AreOperationsObserved()) [[likely]]
      return {};
    return BeginObserved(static_cast<uint8_t>(operation.kind), operation);
  }
  OperationEvent BeginMonitoredBarrier(uint64_t number) const {
    if (!AreOperationsObserved()) [[likely]]
      return {};
    return BeginObserved(trace_kind::kMonitoredBarrier,
                         {.kind = Operation::Kind::kBarrier, .number = number});
  }

 private:
  OperationEvent BeginObserved(uint8_t kind, const Operation& operation) const;

  const std::string name_;
  uint32_t traced_group_ = 0;  // 0: not traced
};

// Begins a wait for a key of a store. `kind`: trace_kind::kStore...
OperationEvent BeginObservedStoreWait(uint8_t kind, std::string_view key);
inline OperationEvent BeginStoreWait(uint8_t kind, std::string_view key) {
  if (!AreOperationsObserved()) [[likely]]
    return {};
  return BeginObservedStoreWait(kind, key);
}

}  // namespace rankrun::comm

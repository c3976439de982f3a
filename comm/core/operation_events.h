#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/private_api.h"
#include "base/status/flight_recorder.h"
#include "base/status/operation_names.h"
#include "base/trace/trace_format.h"
#include "comm/core/operation.h"

// Begin and end of each operation, for the trace of the process, the hooks of the program
// and the flight recorder. Without the first two, an operation costs a branch each, and a
// record unless it is a collective in memory of the CPU, which the group records itself.
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
RANKRUN_PRIVATE_API void OpenTrace(std::optional<int> rank);

// An operation that has begun. Copies mean the same operation, which one of them ends.
// Without destructor, so that it lies in registers.
class OperationEvent {
 public:
  OperationEvent() = default;
  OperationEvent(TraceRecord* record, HookedOperation* hooked) : record_(record), hooked_(hooked) {}

  void SetRecorded(const FlightEntry& recorded) { recorded_ = recorded; }
  // Whether anything depends on its end.
  bool has_end() const { return recorded_.record != nullptr || is_observed(); }
  // To be called once. `peer`: the global rank of the sender of a message that was
  // received from any rank; -1: the peer is that of the beginning.
  void End(bool has_succeeded, int peer = -1) const {
    FlightRecorder::End(recorded_, has_succeeded, peer);
    if (is_observed()) [[unlikely]]
      EndObserved(has_succeeded, peer);
  }

 private:
  bool is_observed() const { return record_ != nullptr || hooked_ != nullptr; }
  RANKRUN_PRIVATE_API void EndObserved(bool has_succeeded, int peer) const;

  FlightEntry recorded_;
  TraceRecord* record_ = nullptr;      // null: not traced
  HookedOperation* hooked_ = nullptr;  // owned until End; null: no hooks
};

// Begins the operations of one process group.
// Thread: any.
class OperationEvents {
 public:
  // `key` is the same on all ranks, and differs from that of other groups. `recorder`
  // outlives this object; null: nothing is recorded.
  OperationEvents(std::string name, std::string_view key, int size, int global_rank,
                  const FlightRecorder* recorder = nullptr);

  // Begins a message, or a collective of a device.
  OperationEvent Begin(const Operation& operation) const {
    return WithRecord(BeginUnrecorded(operation), operation, static_cast<uint8_t>(operation.kind));
  }
  // Begins an operation that the flight recorder has from elsewhere.
  OperationEvent BeginUnrecorded(const Operation& operation) const {
    if (!AreOperationsObserved()) [[likely]]
      return {};
    return BeginObserved(static_cast<uint8_t>(operation.kind), operation);
  }
  OperationEvent BeginMonitoredBarrier(uint64_t number) const {
    const Operation operation{.kind = Operation::Kind::kBarrier, .number = number};
    OperationEvent event;
    if (AreOperationsObserved()) event = BeginObserved(kMonitoredBarrierKind, operation);
    return WithRecord(event, operation, kMonitoredBarrierKind);
  }

 private:
  OperationEvent BeginObserved(uint8_t kind, const Operation& operation) const;
  OperationEvent WithRecord(OperationEvent event, const Operation& operation, uint8_t kind) const {
    if (recorder_ == nullptr) return event;
    ActivityRecord record = RecordOf(operation, 0);
    record.kind = kind;
    event.SetRecorded(recorder_->Begin(record, operation.tag));
    return event;
  }

  const std::string name_;
  const FlightRecorder* const recorder_;
  uint32_t traced_group_ = 0;  // 0: not traced
};

// Begins a wait for a key of a store. `kind`: trace_kind::kStore...
OperationEvent BeginObservedStoreWait(uint8_t kind, std::string_view key);
inline OperationEvent BeginStoreWait(uint8_t kind, std::string_view key) {
  if (!AreOperationsObserved()) [[likely]]
    return {};
  return BeginObservedStoreWait(kind, key);
}

// A call of RPC, or a method that runs for one.
struct RpcOperation {
  uint8_t kind;  // trace_kind::kRpcCall, kRpcMethod
  int peer;      // id of the other worker
  std::string_view method;
  uint64_t bytes;  // of the arguments
};
RANKRUN_PRIVATE_API OperationEvent BeginRpc(const RpcOperation& rpc);

}  // namespace rankrun::comm

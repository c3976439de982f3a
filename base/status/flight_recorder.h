#pragma once

#include <cstdint>

#include "base/fork_count.h"
#include "base/private_api.h"
#include "base/status/activity_table.h"
#include "base/status/flight_table.h"
#include "base/status/shared_field.h"
#include "base/status/ticks.h"

namespace rankrun {

// An operation that was begun in a recorder. A value; copies mean the same operation.
struct FlightEntry {
  FlightRecord* record = nullptr;  // null: not recorded
  uint64_t stamp = 0;
  uint32_t forks = 0;
};

// Writes the operations of one process group. Takes no lock and makes no system call. An
// operation is overwritten by the one kFlightRecords later, even if it is under way then.
// In a process that was forked since the construction, it writes nothing.
class FlightRecorder {
 public:
  FlightRecorder() = default;  // records nothing
  // Forgets the operations of the last group at this place, which is in shared memory
  // and outlives the recorder and its entries. Null: records nothing.
  explicit FlightRecorder(FlightGroup* group);

  // For collectives in memory of the CPU, without a tag.
  // Thread: one at a time.
  void BeginCollective(const ActivityRecord& operation, uint64_t now) {
    if (group_ == nullptr) return;
    current_ = &group_->collectives.records[next_];
    next_ = next_ + 1 == kFlightRecords ? 0 : next_ + 1;
    shared::Set(group_->collectives.begun, ++begun_);
    Write(*current_, operation, 0, now, begun_);
  }
  // Does nothing if no collective has begun.
  void EndCollective(bool has_succeeded) {
    if (current_ == nullptr) return;
    shared::Set(current_->end, Ticks());
    shared::Set(current_->stamp, Stamp(begun_, StateOf(has_succeeded)));
    current_ = nullptr;
    // The next begin must not wait for its cache line.
    __builtin_prefetch(&group_->collectives.records[next_], 1);
  }

  // For all other operations.
  // Thread: any.
  FlightEntry Begin(const ActivityRecord& operation, uint64_t tag) const {
    if (group_ == nullptr || forks_ != ForkCount()) return {};
    FlightRing& ring = group_->others;
    const uint64_t before = std::atomic_ref<uint64_t>(ring.begun).fetch_add(1);
    FlightRecord& record = ring.records[before % kFlightRecords];
    Write(record, operation, tag, Ticks(), before + 1);
    return {&record, Stamp(before + 1, FlightState::kUnderWay), forks_};
  }
  // `peer`: the global rank of the sender of a message that was received from any rank;
  // -1: the peer is that of the begin.
  static void End(const FlightEntry& entry, bool has_succeeded, int peer = -1) {
    if (entry.record != nullptr) EndRecord(entry, has_succeeded, peer);
  }

 private:
  static uint64_t Stamp(uint64_t number, FlightState state) {
    return number << 2 | static_cast<uint64_t>(state);
  }
  static FlightState StateOf(bool has_succeeded) {
    return has_succeeded ? FlightState::kSucceeded : FlightState::kFailed;
  }
  static void Write(FlightRecord& record, const ActivityRecord& operation, uint64_t tag,
                    uint64_t now, uint64_t number) {
    std::atomic_ref<uint64_t>(record.stamp).store(0, std::memory_order_relaxed);
    shared::Set(record.numbers, PackedNumbers(operation));
    shared::Set(record.number, operation.number);
    shared::Set(record.count, operation.count);
    shared::Set(record.tag, tag);
    shared::Set(record.fingerprint, operation.fingerprint);
    shared::Set(record.begin, now);
    shared::Set(record.stamp, Stamp(number, FlightState::kUnderWay));
  }
  RANKRUN_PRIVATE_API static void EndRecord(const FlightEntry& entry, bool has_succeeded, int peer);

  FlightGroup* group_ = nullptr;
  uint32_t forks_ = 0;               // ForkCount() of its process
  FlightRecord* current_ = nullptr;  // collective that is under way
  uint64_t begun_ = 0;               // collectives
  size_t next_ = 0;                  // place of the next collective
};

}  // namespace rankrun

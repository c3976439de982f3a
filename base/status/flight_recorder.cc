#include "base/status/flight_recorder.h"

#include <algorithm>

namespace rankrun {
namespace {

void Clear(FlightRing& ring) {
  const uint64_t begun = std::min<uint64_t>(shared::Get(ring.begun), kFlightRecords);
  shared::Set(ring.begun, uint64_t{0});
  for (uint64_t i = 0; i < begun; ++i) shared::Set(ring.records[i].stamp, uint64_t{0});
}

}  // namespace

FlightRecorder::FlightRecorder(FlightGroup* group) : group_(group) {
  if (group_ == nullptr) return;
  CountForks();
  forks_ = ForkCount();
  Clear(group_->collectives);
  Clear(group_->others);
}

void FlightRecorder::EndRecord(const FlightEntry& entry, bool has_succeeded, int peer) {
  FlightRecord& record = *entry.record;
  // A later operation may have the record by now.
  if (entry.forks != ForkCount() || shared::Get(record.stamp) != entry.stamp) return;
  if (peer >= 0) {
    const uint64_t kinds = shared::Get(record.numbers) & 0xffff'ffff;
    shared::Set(record.numbers, kinds | uint64_t{static_cast<uint32_t>(peer)} << 32);
  }
  shared::Set(record.end, Ticks());
  uint64_t under_way = entry.stamp;
  std::atomic_ref<uint64_t>(record.stamp)
      .compare_exchange_strong(under_way, Stamp(entry.stamp >> 2, StateOf(has_succeeded)));
}

}  // namespace rankrun

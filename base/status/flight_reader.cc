#include "base/status/flight_reader.h"

#include <algorithm>
#include <optional>

#include "base/printable.h"
#include "base/status/shared_field.h"
#include "base/status/status_page.h"

namespace rankrun {
namespace {

using shared::Get;

constexpr int kTries = 10;

bool IsState(uint64_t state) {
  return state >= static_cast<uint64_t>(FlightState::kUnderWay) &&
         state <= static_cast<uint64_t>(FlightState::kFailed);
}

FlightOperation OperationOf(const FlightRecord& record, FlightState state) {
  const bool has_ended = state != FlightState::kUnderWay;
  return {.what = Unpacked(Get(record.numbers), Get(record.number), Get(record.count),
                           Get(record.fingerprint)),
          .state = state,
          .tag = Get(record.tag),
          .begin = Get(record.begin),
          .end = has_ended ? Get(record.end) : 0};
}

// Returns nothing if the record is free, keeps changing, or cannot be at `place`.
std::optional<FlightOperation> Read(const FlightRecord& record, size_t place) {
  for (int i = 0; i < kTries; ++i) {
    const uint64_t stamp = Get(record.stamp);
    const uint64_t number = stamp >> 2;
    if (stamp == 0 || number == 0) return std::nullopt;
    if (!IsState(stamp & 3) || (number - 1) % kFlightRecords != place) return std::nullopt;
    FlightOperation operation = OperationOf(record, static_cast<FlightState>(stamp & 3));
    if (Get(record.stamp) == stamp) return operation;
  }
  return std::nullopt;
}

void Read(const FlightRing& ring, FlightHistory& history) {
  const uint64_t begun = Get(ring.begun);
  history.begun += begun;
  // Reading more would take memory for records that were never written.
  const size_t end = std::min<uint64_t>(begun, kFlightRecords);
  for (size_t i = 0; i < end; ++i) {
    if (auto operation = Read(ring.records[i], i)) history.operations.push_back(*operation);
  }
}

std::string NameOf(const GroupSlot& slot) {
  std::string name;
  for (const char& place : slot.name) {
    const char c = Get(place);
    if (c == '\0') break;
    name += c;
  }
  return OneLine(name);
}

}  // namespace

std::vector<FlightHistory> ReadFlightHistories(const StatusPage& page) {
  const FlightGroup* groups = page.flight_groups();
  if (groups == nullptr) return {};
  const ActivityTable& table = page.activities();
  const size_t end = std::min<size_t>(Get(table.groups_end), kFlightGroups);
  std::vector<FlightHistory> histories;
  for (size_t i = 0; i < end; ++i) {
    const GroupSlot& slot = table.groups[i];
    FlightHistory history{.group = NameOf(slot),
                          .size = Get(slot.size),
                          .is_live = Get(slot.in_use) != 0,
                          .begun = 0,
                          .operations = {}};
    Read(groups[i].collectives, history);
    Read(groups[i].others, history);
    if (history.operations.empty()) continue;
    std::ranges::stable_sort(history.operations, {}, &FlightOperation::begin);
    histories.push_back(std::move(history));
  }
  return histories;
}

void CutAfter(uint64_t moment, std::vector<FlightHistory>& histories) {
  for (FlightHistory& history : histories) {
    std::erase_if(history.operations,
                  [&](const FlightOperation& operation) { return operation.begin > moment; });
    for (FlightOperation& operation : history.operations) {
      if (operation.end <= moment) continue;
      operation.state = FlightState::kUnderWay;
      operation.end = 0;
    }
  }
  std::erase_if(histories, [](const FlightHistory& history) { return history.operations.empty(); });
}

}  // namespace rankrun

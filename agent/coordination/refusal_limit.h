#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "agent/job/decision.h"
#include "base/clock.h"

namespace rankrun::agent {

// Bounds the events about refused nodes, because a scheduler may start one again and again: in an
// hour, one for each node and reason, and few in all. Pure.
class RefusalLimit {
 public:
  static constexpr Duration kPeriod = std::chrono::hours(1);
  static constexpr size_t kMaxEvents = 64;  // in a period

  // Returns whether this event is to be written, and counts it.
  bool Admits(const events::NodeRefused& refusal, TimePoint now);

 private:
  std::optional<TimePoint> begin_;  // of the period
  std::set<std::pair<std::string, std::string>> written_;
};

}  // namespace rankrun::agent

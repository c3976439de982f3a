#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "agent/report/event.h"

namespace rankrun::agent {

// The last events of a job, for `rankctl events`: at most kMaxLines lines and kMaxBytes bytes.
// Formats an event only when that is needed, because most are never asked for. Pure.
class EventRing {
 public:
  static constexpr size_t kMaxLines = 1'000;
  static constexpr size_t kMaxBytes = size_t{1} << 20;
  static constexpr size_t kMaxLineBytes = size_t{512} << 10;  // of a line that `rankctl` can take

  // Adds an event. A note that an event is missing replaces one whose line is too long. Drops
  // the oldest beyond the limits.
  void Add(std::shared_ptr<const events::Event> event);

  // The lines after the one with a number, oldest first, without their newlines.
  struct Lines {
    std::vector<std::string> lines;
    uint64_t last = 0;     // number of the newest of them, or `after`; the first event has 1
    uint64_t dropped = 0;  // lines after `after` that the ring no longer has
  };
  // Returns at most `max_bytes` of them, but at least one line if there is any.
  Lines After(uint64_t after, size_t max_bytes);

 private:
  void Format();

  std::vector<std::shared_ptr<const events::Event>> unformatted_;
  std::deque<std::string> lines_;
  size_t bytes_ = 0;
  uint64_t formatted_ = 0;  // number of the newest line
};

}  // namespace rankrun::agent

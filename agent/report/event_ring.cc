#include "agent/report/event_ring.h"

#include <algorithm>
#include <utility>

namespace rankrun::agent {

void EventRing::Add(std::string line) {
  added_ += 1;
  bytes_ += line.size();
  lines_.push_back(std::move(line));
  while (!lines_.empty() && (lines_.size() > kMaxLines || bytes_ > kMaxBytes)) {
    bytes_ -= lines_.front().size();
    lines_.pop_front();
  }
}

EventRing::Lines EventRing::After(uint64_t after, size_t max_bytes) const {
  const uint64_t before_ring = added_ - lines_.size();
  Lines found{.lines = {}, .last = std::min(after, added_)};
  if (found.last < before_ring) {
    found.dropped = before_ring - found.last;
    found.last = before_ring;
  }
  size_t bytes = 0;
  for (uint64_t i = found.last - before_ring; i < lines_.size(); ++i) {
    const std::string& line = lines_[i];
    bytes += line.size();
    if (bytes > max_bytes && !found.lines.empty()) break;
    found.lines.push_back(line);
    found.last += 1;
  }
  return found;
}

}  // namespace rankrun::agent

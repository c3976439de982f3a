#include "agent/report/event_ring.h"

#include <algorithm>
#include <utility>

namespace rankrun::agent {
namespace {

constexpr size_t kMaxUnformatted = 256;

std::string LineOf(const events::Event& event) {
  std::string line = events::FormatEvent(event);
  if (line.size() > EventRing::kMaxLineBytes) {
    line = events::FormatEvent({.time = event.time,
                                .run_id = event.run_id,
                                .attempt = event.attempt,
                                .payload = events::EventsLost{1}});
  }
  line.pop_back();  // the newline
  return line;
}

}  // namespace

void EventRing::Add(std::shared_ptr<const events::Event> event) {
  const bool is_large = std::holds_alternative<events::Report>(event->payload);
  unformatted_.push_back(std::move(event));
  if (is_large || unformatted_.size() >= kMaxUnformatted) Format();
}

void EventRing::Format() {
  for (const auto& event : std::exchange(unformatted_, {})) {
    lines_.push_back(LineOf(*event));
    bytes_ += lines_.back().size();
    formatted_ += 1;
    while (lines_.size() > kMaxLines || bytes_ > kMaxBytes) {
      bytes_ -= lines_.front().size();
      lines_.pop_front();
    }
  }
}

EventRing::Lines EventRing::After(uint64_t after, size_t max_bytes) {
  Format();
  const uint64_t before_ring = formatted_ - lines_.size();
  Lines found{.lines = {}, .last = std::min(after, formatted_)};
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

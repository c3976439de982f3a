#include "agent/stuck_watch.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "agent/descendants.h"
#include "base/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr int kLooksWithinLimit = 10;
constexpr std::chrono::milliseconds kLongestPause{1'000};
constexpr double kLongestLimit = 365.0 * 24 * 3600;  // seconds

}  // namespace

Duration StuckTimes::Note(pid_t pid, char state, TimePoint now) {
  if (state != 'D') {
    since_.erase(pid);
    return Duration::zero();
  }
  return now - since_.try_emplace(pid, now).first->second;
}

void StuckTimes::ForgetAllBut(const std::map<pid_t, char>& states) {
  std::erase_if(since_, [&](const auto& entry) { return !states.contains(entry.first); });
}

std::optional<Duration> StuckLimit(const std::string& text) {
  double seconds = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  bool number = error == std::errc() && end == text.data() + text.size();
  if (!number || std::isnan(seconds) || seconds <= 0) return std::nullopt;
  std::chrono::duration<double> limit(std::min(seconds, kLongestLimit));
  return std::chrono::duration_cast<Duration>(limit);
}

StuckWatch::StuckWatch(Loop& loop, Duration limit, Callbacks callbacks)
    : loop_(loop),
      limit_(limit),
      callbacks_(std::move(callbacks)),
      next_look_(loop, [this] { Look(); }) {
  next_look_.Start(std::chrono::milliseconds(0));
}

// In the pool: what hangs may also hold up who looks at it.
void StuckWatch::Look() {
  auto states = std::make_shared<std::map<pid_t, char>>();  // of the pool's job and what follows
  for (pid_t pid : callbacks_.workers()) (*states)[pid] = 0;
  RunInPool(
      loop_,
      [states] {
        for (auto& [pid, state] : *states) state = StateOf(pid);
      },
      [this, states] { OnLooked(*states); });
}

void StuckWatch::OnLooked(const std::map<pid_t, char>& states) {
  TimePoint now = std::chrono::steady_clock::now();
  for (const auto& [pid, state] : states) {
    if (times_.Note(pid, state, now) >= limit_) callbacks_.on_stuck(pid);
  }
  times_.ForgetAllBut(states);
  next_look_.Start(std::min<Duration>(limit_ / kLooksWithinLimit, kLongestPause));
}

}  // namespace rankrun::agent

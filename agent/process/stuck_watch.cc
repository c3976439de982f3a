#include "agent/process/stuck_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "agent/process/descendants.h"
#include "base/parse_number.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

constexpr int kScansWithinLimit = 10;
constexpr std::chrono::milliseconds kMaxPause{1'000};
constexpr double kMaxLimit = 365.0 * 24 * 3600;  // seconds

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
  auto seconds = ParseNumber<double>(text);
  if (!seconds || std::isnan(*seconds) || *seconds <= 0) return std::nullopt;
  std::chrono::duration<double> limit(std::min(*seconds, kMaxLimit));
  return std::chrono::duration_cast<Duration>(limit);
}

StuckWatch::StuckWatch(Loop& loop, Duration limit, Callbacks callbacks)
    : loop_(loop),
      limit_(limit),
      callbacks_(std::move(callbacks)),
      next_scan_(loop, [this] { Scan(); }) {
  next_scan_.Start(std::chrono::milliseconds(0));
}

// Runs in the pool because reading the state of a hung process may block, too.
void StuckWatch::Scan() {
  auto states = std::make_shared<std::map<pid_t, char>>();  // shared by both callbacks
  for (pid_t pid : callbacks_.workers()) (*states)[pid] = 0;
  RunInPool(
      loop_,
      [states] {
        for (auto& [pid, state] : *states) state = StateOf(pid);
      },
      [this, states] { OnScanned(*states); });
}

void StuckWatch::OnScanned(const std::map<pid_t, char>& states) {
  TimePoint now = std::chrono::steady_clock::now();
  for (const auto& [pid, state] : states) {
    if (times_.Note(pid, state, now) >= limit_) callbacks_.on_stuck(pid);
  }
  times_.ForgetAllBut(states);
  next_scan_.Start(std::min<Duration>(limit_ / kScansWithinLimit, kMaxPause));
}

}  // namespace rankrun::agent

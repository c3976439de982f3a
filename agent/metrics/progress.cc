#include "agent/metrics/progress.h"

#include <algorithm>

namespace rankrun::agent {
namespace {

constexpr size_t kMaxMarks = 4096;

}  // namespace

void Progress::AttemptStarted(TimePoint now) {
  if (!attempt_began_) lost_.start += std::max(now - began_, Duration::zero());
  if (failed_at_) lost_.downtime += std::max(now - *failed_at_, Duration::zero());
  failed_at_.reset();
  last_done_.reset();
  attempt_began_ = now;
}

void Progress::AttemptFailed(TimePoint now) {
  if (failed_at_ || !attempt_began_) return;
  failed_at_ = now;
  Duration& reason = last_done_ ? lost_.unfinished_step : lost_.start;
  reason += std::max(now - last_done_.value_or(*attempt_began_), Duration::zero());
}

void Progress::StepDone(int64_t step, TimePoint at) {
  if (failed_at_ || !attempt_began_) return;
  if (last_step_ && last_done_ && step == *last_step_) return;
  uint64_t made = 1;
  if (last_step_ && step <= *last_step_) {
    GoBackBefore(step);
  } else if (last_step_ && last_done_) {
    made = static_cast<uint64_t>(step) - static_cast<uint64_t>(*last_step_);
  }
  at = std::max(at, last_done_.value_or(*attempt_began_));
  if (last_done_) {
    productive_ += at - *last_done_;
  } else {
    lost_.start += at - *attempt_began_;
  }
  steps_done_ += made;
  last_step_ = step;
  last_done_ = at;
  AddMark(step);
}

// Takes back the productive time of `step` and of those after it.
void Progress::GoBackBefore(int64_t step) {
  steps_repeated_ += static_cast<uint64_t>(*last_step_) - static_cast<uint64_t>(step) + 1;
  auto first_lost = std::ranges::lower_bound(marks_, step, {}, &Mark::step);
  marks_.erase(first_lost, marks_.end());
  const Duration kept = marks_.empty() ? Duration::zero() : marks_.back().productive;
  lost_.repeated_steps += productive_ - kept;
  productive_ = kept;
}

void Progress::AddMark(int64_t step) {
  marks_.push_back({step, productive_});
  if (marks_.size() <= kMaxMarks) return;
  // Keeps every second mark of the older half, so that recent steps stay exact.
  std::vector<Mark> kept;
  for (size_t i = 0; i < marks_.size(); ++i) {
    if (i % 2 == 0 || i > marks_.size() / 2) kept.push_back(marks_[i]);
  }
  marks_ = std::move(kept);
}

}  // namespace rankrun::agent

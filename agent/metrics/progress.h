#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace rankrun::agent {

// Time that a job loses, by its reason.
struct LostTime {
  // Before the first attempt, and from the start of each to its first step, or to its failure
  // without one.
  Duration start{};
  Duration unfinished_step{};  // from the last step of an attempt to its failure
  Duration repeated_steps{};   // for steps that a later attempt made again
  Duration downtime{};         // from the failure of an attempt to the start of the next
};

// Accounts for the time of a job by the steps that its workers note. A step that is made
// again after a restart was lost work the first time. Without steps, only downtime is known.
// A value.
class Progress {
 public:
  // `began` is the time from which the account is kept.
  explicit Progress(TimePoint began) : began_(began) {}

  void AttemptStarted(TimePoint now);
  // Ends the attempt at its first failure; later calls in the attempt do nothing.
  void AttemptFailed(TimePoint now);
  // Takes a finished step. A step that is not above the one before goes back: the program has
  // loaded an older state.
  void StepDone(int64_t step, TimePoint at);

  // Time in which steps were made that were not repeated.
  Duration productive() const { return productive_; }
  const LostTime& lost() const { return lost_; }
  uint64_t steps_done() const { return steps_done_; }  // with repeated ones
  uint64_t steps_repeated() const { return steps_repeated_; }
  std::optional<int64_t> last_step() const { return last_step_; }

 private:
  // Productive time when a step was done. Older marks are thinned out.
  struct Mark {
    int64_t step;
    Duration productive;
  };

  void GoBackBefore(int64_t step);
  void AddMark(int64_t step);

  TimePoint began_;
  std::vector<Mark> marks_;  // with rising steps
  std::optional<TimePoint> attempt_began_;
  std::optional<TimePoint> failed_at_;  // set: no attempt runs
  std::optional<TimePoint> last_done_;  // time of the last step of this attempt
  std::optional<int64_t> last_step_;    // of the job; not reset by a new attempt
  Duration productive_{};
  LostTime lost_;
  uint64_t steps_done_ = 0;
  uint64_t steps_repeated_ = 0;
};

}  // namespace rankrun::agent

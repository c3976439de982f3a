#include "comm/gloo/collective_monitor.h"

#include <algorithm>
#include <exception>

#include "base/roll_call.h"
#include "comm/core/loss.h"
#include "comm/core/time_left.h"
#include "comm/gloo/error_text.h"

namespace rankrun::comm::gloo {
namespace {

using std::chrono::milliseconds;

// Interval of checks on a collective under way.
constexpr milliseconds kCheckInterval{10};

// Interval of checks on ranks that are not awaited, which cost more.
constexpr milliseconds kDeathInterval{50};

// Time before its time-out in which a rank waits on although another has failed. That one may have
// timed out first because this rank kept it waiting; then this rank says which one it awaits.
constexpr milliseconds kNearTimeOut{200};

// Interval at which the reason of a loss is looked for.
constexpr milliseconds kReasonInterval{1};

// An operation that takes longer than kSlow is compared with the operations of
// the other ranks, and again after pauses that double each time. The rank that
// calls last finds a mismatch after kSlow; the others find its note one pause
// later, so within 1 s of that call.
constexpr milliseconds kSlow{500};
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kMaxPause{400};

// Gloo closes all connections at a time-out, and no farewell can follow. So the monitor ends a
// wait at its time-out, and Gloo this much later, if the monitor waits for the store.
constexpr milliseconds kMonitorDelay{200};

TimePoint Now() { return std::chrono::steady_clock::now(); }

}  // namespace

CollectiveMonitor::CollectiveMonitor(const BackendConfig& config, FailureBoard& failure_board,
                                     Control& control, WakeEvent& wake_event)
    : deaths_(config.deaths),
      global_ranks_(config.global_ranks),
      failure_board_(failure_board),
      control_(control),
      wake_event_(wake_event) {}

void CollectiveMonitor::Begin(const Call& call) {
  MutexLock lock(mutex_);
  operation_ = call.operation;
  began_ = Now();
  deadline_ = began_ + call.timeout;
  next_compare_ = began_ + kSlow;
  next_report_look_ = began_ + kDeathInterval;
  compare_pause_ = kFirstPause;
  wake_event_.SetIfAsleepAt(std::min(began_ + kCheckInterval, deadline_));
}

void CollectiveMonitor::End() {
  MutexLock lock(mutex_);
  operation_.reset();
}

void CollectiveMonitor::AwaitSend(GlooBuffer& buffer, int peer) {
  Await({.buffer = &buffer, .peer = peer, .sends = true});
}

void CollectiveMonitor::AwaitRecv(GlooBuffer& buffer, int peer) {
  Await({.buffer = &buffer, .peer = peer, .sends = false});
}

void CollectiveMonitor::Await(const Wait& wait) {
  {
    MutexLock lock(mutex_);
    if (ended_) throw CollectiveAborted{.why = *ended_};
    wait_ = wait;
    lost_.reset();
    limit_ = TimeLeft(deadline_) + kMonitorDelay;
  }
  for (bool began_after_loss = false;;) {
    WaitResult attempt = WaitOnce(wait);
    MutexLock lock(mutex_);
    if (ended_) {
      wait_.reset();
      throw CollectiveAborted{.why = *ended_};
    }
    const bool was_aborted = !attempt.done && !attempt.failure && Now() < deadline_;
    if (was_aborted && !(lost_ && began_after_loss)) {
      // Either a late abort of an earlier wait, or a loss. The data may have arrived before that.
      // Gloo can only check this by a wait, and closes all connections when that times out. So
      // Check aborts the next one, too.
      began_after_loss |= lost_.has_value();
      lost_.reset();
      limit_ = TimeLeft(deadline_) + kMonitorDelay;
      continue;
    }
    wait_.reset();
    if (attempt.done) return;
    std::optional<std::string> lost = lost_;
    lock.Unlock();
    // Gloo closes the connections at a time-out, which would look like a loss.
    if (Now() >= deadline_) throw CollectiveAborted{.why = TimedOut(wait.peer), .is_own = true};
    Fail(wait.peer, lost ? *lost : *attempt.failure);
  }
}

CollectiveMonitor::WaitResult CollectiveMonitor::WaitOnce(const Wait& wait) const {
  try {
    return {.done = wait.sends ? wait.buffer->waitSend(limit_) : wait.buffer->waitRecv(limit_)};
  } catch (const std::exception& exception) {
    return {.failure = PlainText(exception.what())};
  }
}

Error CollectiveMonitor::TimedOut(int peer) {
  MutexLock lock(mutex_);
  auto waited = std::chrono::duration_cast<milliseconds>(Now() - began_);
  return {ErrorCode::kTimeout, "timed out after " + std::to_string(waited.count()) +
                                   " ms, waiting for " +
                                   RanksInWords({global_ranks_[static_cast<size_t>(peer)]})};
}

void CollectiveMonitor::Fail(int peer, const std::string& why) { EndAsLost(WhyLost(peer, why)); }

// A note ends the operation on all ranks, so only a certain error is published.
void CollectiveMonitor::EndAsLost(const Error& error) {
  // For ranks that the farewell does not reach.
  if (error.code == ErrorCode::kPeerLost) failure_board_.PublishNote(error);
  throw CollectiveAborted{.why = error};
}

Error CollectiveMonitor::WhyLost(int peer, const std::string& why) {
  TimePoint since = Now();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (ended_) throw CollectiveAborted{.why = *ended_};
    }
    if (auto error = failure_board_.WhyLost(peer, why, since)) return *std::move(error);
    deaths_.SleepUntil(Now() + kReasonInterval);
  }
}

void CollectiveMonitor::Stop(const Error& why) {
  MutexLock lock(mutex_);
  EndWith(why);
}

TimePoint CollectiveMonitor::Check(TimePoint now) {
  MutexLock lock(mutex_);
  if (!operation_ || ended_) return TimePoint::max();
  if (deaths_.has_death()) {
    EndWith(deaths_.ErrorSince(began_));
    return TimePoint::max();
  }
  if (auto report = FindReport(now)) {
    EndWith(*report);
    return TimePoint::max();
  }
  CheckWait(now);
  std::optional<Loss> death = FindDeath(now);
  if (!death && now < next_compare_) {
    TimePoint next = now + kCheckInterval;
    return now < deadline_ ? std::min(next, deadline_) : next;
  }

  Operation slow = *operation_;
  lock.Unlock();  // the store may be slow
  auto why = death ? failure_board_.WhyLost(death->peer, death->why, death->since)
                   : failure_board_.Compare(slow);
  lock.Lock();
  if (!operation_ || operation_->number != slow.number) return Now() + kCheckInterval;
  if (why) EndWith(*why);
  if (death) return Now() + kCheckInterval;
  next_compare_ = Now() + compare_pause_;
  compare_pause_ = std::min(2 * compare_pause_, kMaxPause);
  return Now() + kCheckInterval;
}

void CollectiveMonitor::CheckWait(TimePoint now) {
  if (!wait_ || lost_) return;
  lost_ = control_.Lost(wait_->peer);
  if (lost_ || now >= deadline_) Abort(*wait_);
}

// Returns the first rank that was lost without a farewell, once it has been for a while.
std::optional<CollectiveMonitor::Loss> CollectiveMonitor::FindDeath(TimePoint now) {
  if (lost_ || deaths_.has_agent()) return std::nullopt;
  if (!death_ && now >= next_look_) {
    next_look_ = now + kDeathInterval;
    auto lost = control_.FirstSilentLoss();
    if (lost) death_ = Loss{.peer = lost->peer, .why = lost->why, .since = now};
  }
  return death_ && now >= death_->since + kUnawaitedLossPatience ? death_ : std::nullopt;
}

// Returns the failure of a rank, which this one may not await.
std::optional<Error> CollectiveMonitor::FindReport(TimePoint now) {
  if (lost_ || now < next_report_look_ || now + kNearTimeOut >= deadline_) return std::nullopt;
  next_report_look_ = now + kDeathInterval;
  return failure_board_.FailureIn(operation_->number);
}

void CollectiveMonitor::EndWith(const Error& why) {
  if (ended_) return;
  ended_ = why;
  if (wait_) Abort(*wait_);
}

void CollectiveMonitor::Abort(const Wait& wait) {
  if (wait.sends) {
    wait.buffer->abortWaitSend();
  } else {
    wait.buffer->abortWaitRecv();
  }
}

}  // namespace rankrun::comm::gloo

#include "comm/gloo/gloo_watch.h"

#include <algorithm>
#include <exception>

#include "comm/gloo/gloo_words.h"
#include "comm/time_left.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

// How often a collective under way is looked after.
constexpr milliseconds kLookEvery{10};

// How often to look for the reason of a loss.
constexpr milliseconds kBetweenLooks{1};

// An operation that takes longer is compared with what the others are in, and
// again after a pause, of twice the length each time. Who calls last finds a
// mismatch after kSlow, the others its note a pause later: within 1 s of that call.
constexpr milliseconds kSlow{500};
constexpr milliseconds kFirstPause{50};
constexpr milliseconds kLongestPause{400};

TimePoint Now() { return std::chrono::steady_clock::now(); }

}  // namespace

Watch::Watch(const BackendConfig& config, Notes& notes, Control& control, Wakeup& wakeup)
    : deaths_(config.deaths),
      global_ranks_(config.global_ranks),
      notes_(notes),
      control_(control),
      wakeup_(wakeup) {}

void Watch::Begin(const Call& call) {
  std::lock_guard lock(mutex_);
  operation_ = call.operation;
  began_ = Now();
  deadline_ = began_ + call.timeout;
  next_compare_ = began_ + kSlow;
  compare_pause_ = kFirstPause;
  wakeup_.SetIfAsleepAt(began_ + kLookEvery);
}

void Watch::End() {
  std::lock_guard lock(mutex_);
  operation_.reset();
}

void Watch::AwaitSend(GlooBuffer& buffer, int peer) {
  Await({.buffer = &buffer, .peer = peer, .sends = true});
}

void Watch::AwaitRecv(GlooBuffer& buffer, int peer) {
  Await({.buffer = &buffer, .peer = peer, .sends = false});
}

void Watch::Await(const Wait& wait) {
  {
    std::lock_guard lock(mutex_);
    if (ended_) throw Ended{.why = *ended_};
    wait_ = wait;
    lost_.reset();
    limit_ = TimeLeft(deadline_);
  }
  for (;;) {
    const Attempt attempt = WaitOnce(wait);
    std::unique_lock lock(mutex_);
    if (ended_) {
      wait_.reset();
      throw Ended{.why = *ended_};
    }
    if (!attempt.done && !attempt.failure && !lost_) {
      limit_ = TimeLeft(deadline_);  // the abort of an earlier wait came too late for it
      continue;
    }
    wait_.reset();
    if (attempt.done) return;
    const std::optional<std::string> lost = lost_;
    lock.unlock();
    // At its time-out Gloo closes the connections, which looks like a loss.
    if (Now() >= deadline_) throw Ended{.why = TimedOut(wait.peer), .is_own = true};
    if (attempt.failure) Fail(wait.peer, lost.value_or(*attempt.failure));
    return FinishLost(wait, *lost);
  }
}

Watch::Attempt Watch::WaitOnce(const Wait& wait) const {
  try {
    return {.done = wait.sends ? wait.buffer->waitSend(limit_) : wait.buffer->waitRecv(limit_)};
  } catch (const std::exception& exception) {
    return {.failure = PlainWords(exception.what())};
  }
}

Error Watch::TimedOut(int peer) const {
  const auto waited = std::chrono::duration_cast<milliseconds>(Now() - began_);
  return {ErrorCode::kTimeout, "timed out after " + std::to_string(waited.count()) +
                                   " ms, waiting for " +
                                   NameRanks({global_ranks_[static_cast<size_t>(peer)]})};
}

// The data may have come before the connection went. Gloo can tell in one way
// only, which ends all connections if it has not: the others are told before.
void Watch::FinishLost(const Wait& wait, const std::string& why) {
  const Error error = WhyLost(wait.peer, why);
  notes_.SayFarewell(error);
  limit_ = milliseconds(1);
  if (!WaitOnce(wait).done) EndAsLost(error);
}

void Watch::Fail(int peer, const std::string& why) { EndAsLost(WhyLost(peer, why)); }

// The note ends the operation on all ranks, so it is left for what is certain.
void Watch::EndAsLost(const Error& error) {
  // For those whom the farewell does not reach.
  if (error.code == ErrorCode::kPeerLost) notes_.Leave(error);
  throw Ended{.why = error};
}

Error Watch::WhyLost(int peer, const std::string& why) {
  const TimePoint since = Now();
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (ended_) throw Ended{.why = *ended_};
    }
    if (auto error = notes_.WhyLost(peer, why, since)) return *std::move(error);
    deaths_.SleepUntil(Now() + kBetweenLooks);
  }
}

void Watch::Stop(const Error& why) {
  std::lock_guard lock(mutex_);
  EndWith(why);
}

TimePoint Watch::Look(TimePoint now) {
  std::unique_lock lock(mutex_);
  if (!operation_ || ended_) return TimePoint::max();
  if (deaths_.told()) {
    EndWith(deaths_.Ended(began_));
    return TimePoint::max();
  }
  LookAfterWait();
  if (now < next_compare_) return now + kLookEvery;

  const Operation slow = *operation_;
  lock.unlock();  // the store may take its time
  const auto why = notes_.Compare(slow);
  lock.lock();
  if (!operation_ || operation_->number != slow.number) return Now() + kLookEvery;
  if (why) EndWith(*why);
  next_compare_ = Now() + compare_pause_;
  compare_pause_ = std::min(2 * compare_pause_, kLongestPause);
  return Now() + kLookEvery;
}

void Watch::LookAfterWait() {
  if (!wait_ || lost_) return;
  lost_ = control_.Lost(wait_->peer);
  if (lost_) AbortWait();
}

void Watch::EndWith(const Error& why) {
  if (ended_) return;
  ended_ = why;
  if (wait_) AbortWait();
}

void Watch::AbortWait() {
  if (wait_->sends) {
    wait_->buffer->abortWaitSend();
  } else {
    wait_->buffer->abortWaitRecv();
  }
}

}  // namespace rankrun::comm

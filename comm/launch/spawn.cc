#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <utility>
#include <vector>

#include <rankrun/spawn.h>

#include "base/clock.h"
#include "base/interruptible_call.h"
#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/launch/forked_process.h"

namespace rankrun {
namespace {

using comm::ForkedProcess;
using std::chrono::milliseconds;

constexpr milliseconds kDefaultGrace{30'000};  // between SIGTERM and SIGKILL, as in PyTorch
// A killed process closes its connections some time before its end shows.
constexpr milliseconds kMaxCauseDelay{200};
constexpr milliseconds kForEver = std::chrono::hours(24 * 365);

TimePoint After(milliseconds timeout) {
  return std::chrono::steady_clock::now() + comm::Bounded(timeout);
}

}  // namespace

SpawnError::SpawnError(SpawnFailure failure)
    : DistError("Spawn: " + comm::InWords(failure)), failure_(std::move(failure)) {}
SpawnError::~SpawnError() = default;

struct SpawnContext::State {
  const pid_t owner = getpid();          // a fork of it must not signal the processes
  std::vector<ForkedProcess> processes;  // by rank
  std::optional<SpawnFailure> failure;   // the first

  bool AllHaveEnded() const { return std::ranges::all_of(processes, &ForkedProcess::ended); }

  // Reaps processes that have ended. Waits until there is one. Returns false after
  // the deadline.
  bool ReapSome(TimePoint deadline) {
    std::vector<pollfd> waits;
    for (const ForkedProcess& process : processes) {
      waits.push_back({process.ended() ? -1 : process.handle().fd(), POLLIN, 0});
    }
    for (;;) {
      auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
      int slice = static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
      if (poll(waits.data(), waits.size(), slice) > 0 && ReapEnded()) return true;
      if (std::chrono::steady_clock::now() >= deadline) return false;
    }
  }

  // Returns whether a process has ended since the last call.
  bool ReapEnded() {
    bool reaped = false;
    for (ForkedProcess& process : processes) {
      if (process.ended() || !process.handle().HasEnded()) continue;
      process.Reap();
      reaped = true;
    }
    return reaped;
  }

  void ReapAll(TimePoint deadline) {
    while (!AllHaveEnded() && ReapSome(deadline)) {
    }
  }

  // Returns whether processes have failed, each after it has lost another one.
  bool LacksCause() const {
    bool has_failed = false;
    for (const ForkedProcess& process : processes) {
      if (!process.failure()) continue;
      if (!process.lost_peer()) return false;
      has_failed = true;
    }
    return has_failed;
  }

  // Prefers a process that has not lost another one, for which it waits an instant.
  void FindFailure() {
    const TimePoint deadline = After(kMaxCauseDelay);
    while (!failure && LacksCause() && !AllHaveEnded() && ReapSome(deadline)) {
    }
    for (bool lost_peer : {false, true}) {
      for (const ForkedProcess& process : processes) {
        if (failure || !process.failure() || process.lost_peer() != lost_peer) continue;
        failure = process.failure();
      }
    }
  }

  void SignalAll(int number) {
    for (const ForkedProcess& process : processes) {
      if (!process.ended()) process.Signal(number);
    }
  }

  void EndAll(milliseconds grace) {
    SignalAll(SIGTERM);
    SignalAll(SIGCONT);  // a stopped process would not react
    ReapAll(After(grace));
    SignalAll(SIGKILL);
    ReapAll(After(kForEver));
  }
};

SpawnContext::SpawnContext(std::unique_ptr<State> state) : state_(std::move(state)) {}
SpawnContext::SpawnContext(SpawnContext&& other) noexcept = default;

SpawnContext& SpawnContext::operator=(SpawnContext&& other) noexcept {
  SpawnContext ends(std::move(*this));
  state_ = std::move(other.state_);
  return *this;
}

SpawnContext::~SpawnContext() {
  if (state_ != nullptr && state_->owner == getpid()) state_->EndAll(kDefaultGrace);
}

bool SpawnContext::Join(std::optional<milliseconds> timeout, std::optional<milliseconds> grace) {
  State& state = *state_;
  TimePoint deadline = After(timeout.value_or(kForEver));
  state.FindFailure();
  while (!state.failure && !state.AllHaveEnded()) {
    if (!state.ReapSome(InterruptibleCall::NextLook(deadline))) {
      if (InterruptibleCall::IsInterrupted()) {
        comm::Throw({ErrorCode::kCancelled, std::string("Spawn: the wait for the processes was ") +
                                                InterruptibleCall::kText});
      }
      if (After(milliseconds(0)) >= deadline) return false;
    }
    state.FindFailure();
  }
  if (!state.failure) return true;
  if (grace) state.ReapAll(After(*grace));
  state.EndAll(grace.value_or(kDefaultGrace));
  throw SpawnError(*state.failure);
}

std::vector<pid_t> SpawnContext::pids() const {
  std::vector<pid_t> pids;
  for (const ForkedProcess& process : state_->processes) pids.push_back(process.pid());
  return pids;
}

SpawnContext Spawn(const std::function<void(int rank)>& function, int processes, bool join) {
  if (processes < 1) {
    comm::Throw({ErrorCode::kInvalid,
                 "Spawn: processes is " + std::to_string(processes) + ": want at least 1"});
  }
  if (!function) comm::Throw({ErrorCode::kInvalid, "Spawn: function is empty"});
  if (auto ok = comm::CheckFork(comm::FactsOfThisProcess()); !ok) {
    comm::Throw(std::move(ok).error().In("Spawn"));
  }
  auto state = std::make_unique<SpawnContext::State>();
  for (int rank = 0; rank < processes; ++rank) {
    auto process = ForkedProcess::Start(function, rank, state->processes);
    if (!process) {
      state->EndAll(milliseconds(0));
      comm::Throw(std::move(process).error().In("Spawn: start rank " + std::to_string(rank) +
                                                " of " + std::to_string(processes)));
    }
    state->processes.push_back(*std::move(process));
  }
  SpawnContext context(std::move(state));
  if (join) context.Join();
  return context;
}

}  // namespace rankrun

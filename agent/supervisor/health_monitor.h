#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/early_end.h"
#include "agent/health/hang_watch.h"
#include "agent/health/quiet_watch.h"
#include "agent/health/sampler.h"
#include "agent/health/store_waits.h"
#include "agent/process/stuck_watch.h"
#include "base/clock.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// Monitored barrier over the workers of this node: takes a sample of each periodically and has
// them judged. In a job of several nodes, the coordinator's node judges the samples of all.
// Thread: loop.
class HealthMonitor {
 public:
  struct Callbacks {
    std::function<std::vector<WorkerSample>()> samples;  // of the workers; empty: none runs
    std::function<void(const std::string& line)> show;
    std::function<void(const HangVerdict&)> on_hang;
    std::function<std::vector<pid_t>()> workers;  // running ones
    std::function<void(pid_t worker)> on_stuck;   // in the kernel, for longer than stuck_limit
    std::optional<Duration> stuck_limit;          // empty: do not check for it
    // finish_limit after the first worker's end. The verdict may need stacks, which are read then.
    std::function<void(const HangVerdict&)> on_unfinished;
    std::optional<Duration> finish_limit;  // empty: none
    // Waits at the store, if this node hosts it, and the store's port.
    std::function<std::vector<StoreWaitTimes::Entry>()> store_waits;
    std::function<uint16_t()> store_port;
    std::function<uint64_t()> store_changes;  // requests that have changed it; 0: hosts none
    // Several nodes: gets the samples of this node when they are wanted; else empty.
    std::function<void(std::vector<WorkerSample>, std::vector<WaitingClient>)> send = {};
    // Reads the stacks of these workers before on_hang, which follows `done`, or kMaxStacksTime.
    // Empty: nobody reads them.
    std::function<void(std::vector<pid_t>, std::function<void()> done)> take_stacks = {};
    // A worker has been quiet for the time of a notice, and none shows what it waits for.
    std::function<void(std::vector<WorkerSample>, Duration quiet)> on_quiet = {};
  };
  static constexpr std::chrono::seconds kMaxStacksTime{2};

  HealthMonitor(Loop& loop, const HangPolicy& policy, Callbacks callbacks);
  HealthMonitor(const HealthMonitor&) = delete;
  HealthMonitor& operator=(const HealthMonitor&) = delete;

  // Begins to check for workers that hang in the kernel, if stuck_limit is set.
  void WatchForStuck();

  void BeginAttempt();
  void EndAttempt();
  // A worker has succeeded.
  void NoteFinished();
  // Several nodes: workers of this node that have all succeeded are no part of the job any more.
  void ForgetFinished() { finished_.clear(); }
  // The workers are stopped for a while, or continue.
  void Pause(bool is_paused);
  // The coordinator wants samples for the next kWantedFor.
  void WantSamples();
  // The coordinator wants the stacks of all workers: has them read, then calls `done`.
  void TakeStacks(std::function<void()> done);
  // The coordinator has found that the workers hang.
  void OnOrder(HangVerdict verdict);

  // Why the agent ended the attempt, if no worker was found to be the cause; else empty.
  const std::string& own_cause() const { return own_cause_; }
  void NoteOwnCause(const std::string& text) { own_cause_ = text; }

 private:
  // Steps towards on_unfinished. Work shows only as a difference of two looks.
  enum class FinishPhase : uint8_t { kNone, kWaiting, kFirstLook, kSecondLook, kStacks };

  void Take();
  void LookForQuiet(const std::vector<WorkerSample>& samples);
  void Judge(const std::vector<WorkerSample>& samples);
  void SendFinished();
  void JudgeRead(std::vector<WorkerSample> samples);
  void OnVerdict(HangVerdict verdict, const std::vector<WorkerSample>& samples);
  void Finish();
  std::vector<WorkerSample> Samples() const;
  void UpdateClients();
  bool Read(std::vector<WorkerSample> samples, bool has_work, Sampler::Done done);
  void OnFinishTimer();
  void LookAtUnfinished(FinishPhase next, Duration limit);
  void ConcludeUnfinished();

  Loop& loop_;
  Callbacks callbacks_;
  const Duration period_;
  HangWatch watch_;
  QuietWatch quiet_;
  StoreWaitTimes store_times_;
  std::vector<WaitingClient> clients_;  // of the store, at this look
  bool waits_at_store_ = true;          // as far as is known, one of them is a main thread's
  // Several nodes: the last samples of workers that have all succeeded, while others may run.
  std::vector<WorkerSample> finished_;
  std::vector<WorkerSample> last_read_;  // several nodes: the last samples with facts
  int attempts_ = 0;  // begun, so that late samples of an earlier one are dropped
  bool is_running_ = false;
  bool is_paused_ = false;
  TimePoint wanted_until_{};
  TimePoint reading_since_{};  // the facts of the last batch
  std::string own_cause_;
  std::optional<HangVerdict> verdict_;  // whose stacks are being read
  Timer next_;
  Timer stacks_deadline_;
  Timer finish_timer_;
  FinishPhase finish_phase_ = FinishPhase::kNone;
  TimePoint finish_look_{};         // the first of the two
  HangVerdict unfinished_;          // whose stacks are being read
  EarlyEndNotices finished_times_;  // of `finished_`
  std::optional<StuckWatch> stuck_watch_;
  Sampler sampler_;
};

}  // namespace rankrun::agent

#include "agent/supervisor/health_monitor.h"

#include <algorithm>
#include <utility>

namespace rankrun::agent {
namespace {

constexpr int kLooksPerLimit = 5;
constexpr Duration kMinPeriod = std::chrono::milliseconds(20);
constexpr Duration kMaxPeriod = std::chrono::seconds(1);
constexpr Duration kMaxReading = std::chrono::seconds(2);
constexpr Duration kWantedFor = std::chrono::seconds(5);
constexpr Duration kBetweenFinishLooks = std::chrono::seconds(1);

Duration PeriodOf(const HangPolicy& policy) {
  Duration limit = policy.notice > Duration::zero() ? policy.notice : kMaxPeriod * kLooksPerLimit;
  if (policy.timeout) limit = std::min(limit, *policy.timeout);
  return std::clamp(limit / kLooksPerLimit, kMinPeriod, kMaxPeriod);
}

Duration BetweenFinishLooks(Duration limit) { return std::min(limit / 2, kBetweenFinishLooks); }

TimePoint Now() { return std::chrono::steady_clock::now(); }

std::vector<pid_t> PidsOf(const std::vector<int>& ranks, const std::vector<WorkerSample>& samples) {
  std::vector<pid_t> pids;
  for (int rank : ranks) {
    auto found = std::ranges::find(samples, rank, &WorkerSample::global_rank);
    if (found != samples.end() && found->pid != 0) pids.push_back(found->pid);
  }
  return pids;
}

// Those that wait for a lock, as most do that wait for others, come last: there is a limit.
std::vector<pid_t> AllPids(const std::vector<WorkerSample>& samples) {
  std::vector<pid_t> pids;
  const auto add = [&](bool waits_for_lock) {
    for (const WorkerSample& sample : samples) {
      const bool waits = sample.process && sample.process->call == CallKind::kLock;
      if (sample.pid != 0 && !sample.has_ended && waits == waits_for_lock) {
        pids.push_back(sample.pid);
      }
    }
  };
  add(false);
  add(true);
  return pids;
}

}  // namespace

HealthMonitor::HealthMonitor(Loop& loop, const HangPolicy& policy, Callbacks callbacks)
    : loop_(loop),
      callbacks_(std::move(callbacks)),
      period_(PeriodOf(policy)),
      watch_(policy),
      quiet_(policy.notice),
      next_(loop, [this] { Take(); }),
      stacks_deadline_(loop, [this] { Finish(); }),
      finish_timer_(loop, [this] { OnFinishTimer(); }),
      finished_times_(policy.notice),
      sampler_(loop) {}

void HealthMonitor::WatchForStuck() {
  if (!callbacks_.stuck_limit) return;
  stuck_watch_.emplace(
      loop_, *callbacks_.stuck_limit,
      StuckWatch::Callbacks{.workers = callbacks_.workers, .on_stuck = callbacks_.on_stuck});
}

void HealthMonitor::BeginAttempt() {
  attempts_ += 1;
  is_running_ = true;
  own_cause_.clear();
  finished_.clear();
  last_read_.clear();
  waits_at_store_ = true;
  watch_.BeginAttempt(Now());
  quiet_.StartOver();
  finished_times_.BeginAttempt();
  next_.Start(period_);
}

void HealthMonitor::EndAttempt() {
  is_running_ = false;
  finish_phase_ = FinishPhase::kNone;
  if (finished_.empty()) next_.Stop();
  finish_timer_.Stop();
  verdict_.reset();
  stacks_deadline_.Stop();
}

void HealthMonitor::NoteFinished() {
  if (callbacks_.send) {
    std::vector<WorkerSample> samples = callbacks_.samples();
    if (std::ranges::all_of(samples, &WorkerSample::has_ended)) finished_ = std::move(samples);
  }
  if (!callbacks_.finish_limit || finish_phase_ != FinishPhase::kNone) return;
  finish_phase_ = FinishPhase::kWaiting;
  finish_timer_.Start(*callbacks_.finish_limit - BetweenFinishLooks(*callbacks_.finish_limit));
}

void HealthMonitor::OnFinishTimer() {
  if (is_paused_) return finish_timer_.Start(period_);
  switch (finish_phase_) {
    case FinishPhase::kNone:
      return;
    case FinishPhase::kWaiting:
      finish_look_ = Now();
      return LookAtUnfinished(FinishPhase::kFirstLook,
                              BetweenFinishLooks(*callbacks_.finish_limit));
    case FinishPhase::kFirstLook:
      return LookAtUnfinished(FinishPhase::kSecondLook, kMaxReading);
    case FinishPhase::kSecondLook:
      return ConcludeUnfinished();
    case FinishPhase::kStacks:
      return callbacks_.on_unfinished(unfinished_);
  }
}

// `limit`: until the next step, even if /proc does not answer.
void HealthMonitor::LookAtUnfinished(FinishPhase next, Duration limit) {
  finish_phase_ = next;
  finish_timer_.Start(limit);
  UpdateClients();
  const bool has_begun = Read(Samples(), true, [this, next, attempt = attempts_](auto read) {
    if (!is_running_ || attempt != attempts_) return;
    JudgeRead(std::move(read));
    if (next == FinishPhase::kFirstLook) finish_look_ = Now();  // work shows from here on
    if (next == FinishPhase::kSecondLook) finish_timer_.Start(Duration::zero());
  });
  if (!has_begun) JudgeRead(Samples());
}

void HealthMonitor::ConcludeUnfinished() {
  unfinished_ = watch_.JudgeUnfinished(finish_look_);
  if (!unfinished_.needs_stacks || !callbacks_.take_stacks) {
    return callbacks_.on_unfinished(unfinished_);
  }
  finish_phase_ = FinishPhase::kStacks;
  finish_timer_.Start(kMaxStacksTime);
  callbacks_.take_stacks(AllPids(callbacks_.samples()), [this, attempt = attempts_] {
    if (is_running_ && attempt == attempts_) finish_timer_.Start(Duration::zero());
  });
}

void HealthMonitor::Pause(bool is_paused) {
  is_paused_ = is_paused;
  if (is_paused) return;
  watch_.StartOver(Now());
  quiet_.StartOver();
}

void HealthMonitor::WantSamples() { wanted_until_ = Now() + kWantedFor; }

// A wait for a key of the store is shown already, unless it is one beside the main thread.
void HealthMonitor::LookForQuiet(const std::vector<WorkerSample>& samples) {
  const bool waits_at_store = !clients_.empty() && waits_at_store_;
  if (!callbacks_.on_quiet || waits_at_store) return;
  if (auto quiet = quiet_.Look(samples, Now())) callbacks_.on_quiet(samples, *quiet);
}

// The facts of /proc are read only after somebody has waited for a while.
void HealthMonitor::Take() {
  next_.Start(period_);
  if (is_paused_ || verdict_) return;
  std::vector<WorkerSample> samples = Samples();
  if (samples.empty() && finished_.empty()) return;
  for (WorkerSample& sample : finished_) sample.store_changes = callbacks_.store_changes();
  UpdateClients();
  bool waits_at_store = std::ranges::any_of(
      clients_, [&](const WaitingClient& client) { return client.lasted >= watch_.Patience(); });
  bool is_wanted = callbacks_.send && Now() < wanted_until_;
  if (!finished_.empty()) {
    for (WorkerSample& sample : finished_) {
      const TimePoint now = Now();
      sample.ended_for += now - sample.taken.value_or(now);
      sample.taken = now;
    }
    const auto since = SinceFirstEnd(finished_);
    if (is_wanted || waits_at_store || finished_times_.IsNear(since, watch_.Patience())) {
      SendFinished();
    }
    finished_times_.Take(*since);
    return;
  }
  LookForQuiet(samples);
  const bool needs_work = watch_.NeedsWork(Now());
  if (!waits_at_store && !is_wanted && !needs_work && !watch_.NeedsFacts(samples, Now())) {
    return Judge(samples);
  }
  bool has_begun = Read(samples, needs_work, [this, attempt = attempts_](auto read) {
    if (is_running_ && attempt == attempts_) JudgeRead(std::move(read));
  });
  if (has_begun) {
    reading_since_ = Now();
  } else if (Now() - reading_since_ > kMaxReading) {
    JudgeRead(std::move(samples));  // without facts, because /proc does not answer
  }
}

std::vector<WorkerSample> HealthMonitor::Samples() const {
  std::vector<WorkerSample> samples = callbacks_.samples();
  for (WorkerSample& sample : samples) sample.store_changes = callbacks_.store_changes();
  return samples;
}

void HealthMonitor::UpdateClients() {
  clients_ = store_times_.Note(callbacks_.store_waits(), Now());
}

bool HealthMonitor::Read(std::vector<WorkerSample> samples, bool has_work, Sampler::Done done) {
  WantedFacts wanted{.has_work = has_work, .excluded_port = callbacks_.store_port()};
  // In a job of several nodes another one may have the store.
  if (!clients_.empty() || callbacks_.send) wanted.store_port = wanted.excluded_port;
  return sampler_.Read(std::move(samples), wanted, std::move(done));
}

// Others may wait for them, or for a key of the store of this node.
void HealthMonitor::SendFinished() { callbacks_.send(finished_, clients_); }

void HealthMonitor::JudgeRead(std::vector<WorkerSample> samples) {
  if (is_paused_) return;
  if (!callbacks_.send) {
    AssignStoreWaits(clients_, samples);
    waits_at_store_ = std::ranges::any_of(
        samples, [](const WorkerSample& sample) { return sample.store_wait.has_value(); });
    return Judge(samples);
  }
  std::vector<WorkerSample> limited = samples;
  watch_.LimitTimes(limited, Now());
  last_read_ = samples;
  callbacks_.send(std::move(limited), clients_);
  Judge(samples);
}

void HealthMonitor::Judge(const std::vector<WorkerSample>& samples) {
  HangFindings findings = watch_.Look(samples, Now());
  if (callbacks_.send) return;  // these are not all workers of the job
  for (const std::string& notice : findings.notices) callbacks_.show("rankrun: " + notice + "\n");
  if (findings.verdict) OnVerdict(std::move(*findings.verdict), samples);
}

void HealthMonitor::TakeStacks(std::function<void()> done) {
  std::vector<pid_t> pids = AllPids(last_read_);
  if (!is_running_ || is_paused_ || !callbacks_.take_stacks || pids.empty()) return;
  callbacks_.take_stacks(std::move(pids), [this, attempt = attempts_, done = std::move(done)] {
    if (is_running_ && attempt == attempts_) done();
  });
}

void HealthMonitor::OnOrder(HangVerdict verdict) {
  if (is_running_ && !verdict_) OnVerdict(std::move(verdict), callbacks_.samples());
}

void HealthMonitor::OnVerdict(HangVerdict verdict, const std::vector<WorkerSample>& samples) {
  verdict_ = std::move(verdict);
  std::vector<pid_t> pids = PidsOf(verdict_->witnesses, samples);
  if (verdict_->needs_stacks && !callbacks_.send) pids = AllPids(samples);
  if (!callbacks_.take_stacks || pids.empty()) return Finish();
  stacks_deadline_.Start(kMaxStacksTime);
  callbacks_.take_stacks(std::move(pids), [this, attempt = attempts_] {
    if (attempt == attempts_) stacks_deadline_.Start(Duration::zero());
  });
}

void HealthMonitor::Finish() {
  if (auto verdict = std::exchange(verdict_, std::nullopt)) callbacks_.on_hang(*verdict);
}

}  // namespace rankrun::agent

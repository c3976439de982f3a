#include "agent/health/hang_watch.h"

#include <algorithm>
#include <utility>

#include "agent/health/peer_waits.h"
#include "base/format.h"

namespace rankrun::agent {
namespace {

constexpr double kStillShare = 0.05;                // of a core: the threads of an idle program
constexpr uint64_t kStillBytes = 4'096;             // of files in one look, likewise
constexpr Duration kGap = std::chrono::seconds(5);  // between looks: the agent was stopped itself
constexpr const char* kDeadlock = "dead-lock";      // key of the notice about one
constexpr size_t kMaxNotices = 4;                   // in one look
constexpr int kWorkReadings = 10;                   // in the time of a verdict
constexpr Duration kMaxReading = std::chrono::seconds(2);  // then /proc does not answer

uint64_t OperationsOf(const WorkerSample& sample) {
  uint64_t operations = 0;
  for (const GroupActivity& group : sample.groups) {
    operations += group.last.number + group.completed;
  }
  return operations;
}

double Share(Duration part, Duration whole) {
  return whole > Duration::zero()
             ? static_cast<double>(part.count()) / static_cast<double>(whole.count())
             : 0;
}

bool IsStoppedForDebugging(Condition condition) { return condition == Condition::kHeld; }

}  // namespace

void HangWatch::BeginAttempt(TimePoint now) {
  began_ = last_progress_ = now;
  last_look_.reset();
  last_work_.reset();
  has_judged_ = false;
  seen_.clear();
  counters_.clear();
  shown_.clear();
  early_ends_.BeginAttempt();
}

Duration HangWatch::ShortestLimit() const {
  Duration limit = policy_.notice > Duration::zero() ? policy_.notice : Duration::max();
  return policy_.timeout ? std::min(limit, *policy_.timeout) : limit;
}

Duration HangWatch::Patience() const { return ShortestLimit() / 2; }

void HangWatch::LimitTimes(std::vector<WorkerSample>& samples, TimePoint now) const {
  const Duration most = now - began_;
  for (WorkerSample& sample : samples) {
    for (GroupActivity& group : sample.groups) {
      const Duration awaited = std::min(group.awaited_for(), most);
      group.since_entered = std::min(group.since_entered, most);
      group.unawaited = group.since_entered - awaited;
    }
    sample.awaited_for = std::min(sample.awaited_for, most);
    if (sample.store_wait) sample.store_wait->lasted = std::min(sample.store_wait->lasted, most);
  }
}

bool HangWatch::NeedsFacts(const std::vector<WorkerSample>& samples, TimePoint now) {
  if (ShortestLimit() == Duration::max()) return false;
  const Duration limit = std::min(Patience(), now - began_);
  if (now - began_ < Patience()) return false;
  if (early_ends_.IsNear(SinceFirstEnd(samples), Patience())) return true;
  for (const WorkerSample& sample : samples) {
    for (const GroupActivity& group : sample.groups) {
      if (group.is_awaited() && group.awaited_for() >= limit) return true;
    }
    if (!sample.awaited.empty() && sample.awaited_for >= limit) return true;
    if (sample.store_wait && sample.store_wait->lasted >= limit) return true;
  }
  return policy_.timeout && now - last_progress_ >= *policy_.timeout / 2;
}

bool HangWatch::NeedsWork(TimePoint now) const {
  if (!policy_.timeout || !last_look_) return false;
  if (Quiet(now) >= *policy_.timeout) return true;
  const bool is_quiet = std::max(last_progress_, began_) < *last_look_;
  return is_quiet && (!last_work_ || now - *last_work_ >= *policy_.timeout / kWorkReadings);
}

// Returns whether the worker has worked since its work was read before. Its work
// before the first reading is unknown.
bool HangWatch::UpdateWork(const WorkerSample& sample, TimePoint now, Counters& counters) {
  const TimePoint taken = sample.taken.value_or(now);
  const bool calls_peer = sample.process && sample.process->call == CallKind::kPeer;
  const bool works =
      !counters.facts || ShowsWork(*counters.facts, *sample.work, taken - counters.facts_taken,
                                   calls_peer && counters.calls_peer);
  counters.facts = sample.work;
  counters.facts_taken = taken;
  counters.calls_peer = calls_peer;
  counters.connections.clear();
  for (const PeerConnection& connection : sample.work->connections) {
    counters.connections.push_back(
        {connection.id, sample.global_rank, now - connection.since_received});
  }
  last_work_ = now;
  return works;
}

// A program without librankrun that mostly sleeps shows no more than the data of its workers.
void HangWatch::NoteExchanges(TimePoint now) {
  if (last_work_ != now) return;
  std::vector<ConnectionTime> ends;
  for (const auto& [rank, counters] : counters_) {
    ends.insert(ends.end(), counters.connections.begin(), counters.connections.end());
  }
  if (auto last = LastExchange(std::move(ends))) last_progress_ = std::max(last_progress_, *last);
}

void HangWatch::UpdateOne(const WorkerSample& sample, TimePoint now) {
  const TimePoint taken = sample.taken.value_or(now);
  auto [place, is_new] = counters_.try_emplace(sample.global_rank);
  Counters& counters = place->second;
  if (!is_new && taken <= counters.taken) return;
  const Counters before = counters;
  counters.taken = taken;
  counters.cpu_time = sample.cpu_time;
  counters.operations = OperationsOf(sample);
  counters.store_changes = sample.store_changes;
  counters.is_in_kernel = sample.process && sample.process->state == 'D';
  counters.work.was_in_kernel = before.is_in_kernel;
  if (sample.process) counters.io_bytes = sample.process->io_bytes;
  const bool has_worked = sample.work && UpdateWork(sample, now, counters);
  if (is_new) {
    last_progress_ = now;
    return;
  }
  uint64_t io = counters.io_bytes && before.io_bytes ? *counters.io_bytes - *before.io_bytes : 0;
  bool moves = counters.operations != before.operations || io > kStillBytes;
  if (moves) counters.moved_at = now;
  counters.work.cpu_share = Share(counters.cpu_time - before.cpu_time, taken - before.taken);
  counters.work.moves = counters.moved_at && now - *counters.moved_at < Patience();
  bool is_ready = sample.process && sample.process->state == 'R';
  const bool changes_store = counters.store_changes != before.store_changes;
  bool works = has_worked || changes_store || moves || is_ready ||
               counters.work.cpu_share >= kStillShare || sample.is_saving;
  if (works) last_progress_ = now;
}

// Any thread may wait at the store. The rank waits only if its main thread does; not before the
// last look at which that did anything else. A thread that waits runs now and then, but not for
// long.
void HangWatch::LimitStoreWait(WorkerSample& sample, TimePoint now) {
  if (!sample.process) return;
  Counters& counters = counters_.at(sample.global_rank);
  const bool runs = sample.process->call == CallKind::kNone;
  if (runs && counters.work.cpu_share >= kStillShare) sample.store_wait.reset();
  if (!sample.store_wait) counters.was_off_store = now;
  if (sample.store_wait && counters.was_off_store) {
    sample.store_wait->lasted = std::min(sample.store_wait->lasted, now - *counters.was_off_store);
  }
}

void HangWatch::Update(std::vector<WorkerSample>& samples, TimePoint now) {
  last_look_ = now;
  now_.clear();
  conditions_.clear();
  NoteMembers(samples, seen_);
  for (WorkerSample& sample : samples) {
    UpdateOne(sample, now);
    LimitStoreWait(sample, now);
    now_[sample.global_rank] = sample;
    conditions_[sample.global_rank] = ConditionOf(sample, counters_[sample.global_rank].work);
  }
  NoteExchanges(now);
}

std::set<int> HangWatch::Halted() const {
  std::set<int> halted;
  for (const auto& [rank, condition] : conditions_) {
    if (IsHalted(condition)) halted.insert(rank);
  }
  return halted;
}

HangFindings HangWatch::Look(std::vector<WorkerSample> samples, TimePoint now) {
  if (policy_.looks_always && last_look_ && now - *last_look_ > kGap) StartOver(now);
  LimitTimes(samples, now);
  Update(samples, now);
  bool is_held = std::ranges::any_of(
      conditions_, [](const auto& entry) { return IsStoppedForDebugging(entry.second); });
  if (is_held) {
    StartOver(now);
    last_progress_ = now;
    return {};
  }
  waits_ = FindWaits(samples, seen_, Halted());
  ForgetOldNotices();
  HangFindings findings;
  const std::vector<Hang> hangs = FindHangs();
  for (const Hang& hang : hangs) {
    if (!findings.verdict && !has_judged_) findings.verdict = VerdictOf(hang);
    auto notice = NoticeOf(hang);
    if (notice && findings.notices.size() < kMaxNotices) findings.notices.push_back(*notice);
  }
  if (auto notice = NoticeOfEarlyEnd(hangs)) findings.notices.push_back(*notice);
  if (!findings.verdict && !has_judged_) findings.verdict = VerdictOnStillness(now);
  has_judged_ |= findings.verdict.has_value();
  return findings;
}

// Returns the hangs whose cause can be named, longest first; of a dead-lock, one.
std::vector<HangWatch::Hang> HangWatch::FindHangs() const {
  Blame blame = FindBlame(waits_, Halted());
  std::vector<Hang> hangs;
  std::optional<Hang> deadlock;
  for (const Wait& wait : waits_) {
    Hang hang{.wait = wait, .suspects = {}};
    bool is_locked = std::ranges::any_of(wait.waiters,
                                         [&](int rank) { return blame.deadlocked.contains(rank); });
    for (int rank : wait.ranks) {
      if (blame.roots.contains(rank)) hang.suspects.insert(rank);
    }
    if (is_locked && hang.suspects.empty()) {
      if (!deadlock || wait.lasted < deadlock->wait.lasted) deadlock = hang;
      continue;
    }
    // Others wait for these waiters, and the first cause is further away.
    bool is_indirect = hang.suspects.empty() && !wait.ranks.empty();
    if (!is_indirect) hangs.push_back(std::move(hang));
  }
  std::ranges::stable_sort(hangs, std::greater<>(), [](const Hang& h) { return h.wait.lasted; });
  if (deadlock) {
    // The wait that began last has closed the cycle.
    deadlock->suspects = blame.deadlocked;
    deadlock->is_deadlock = true;
    hangs.insert(hangs.begin(), *std::move(deadlock));
  }
  return hangs;
}

// An unknown partner, such as that of a receive from any rank, may be outside the job.
bool HangWatch::NamesCause(const Hang& hang) {
  return !hang.suspects.empty() || hang.wait.all_have_entered;
}

void HangWatch::ForgetOldNotices() {
  std::erase_if(shown_, [&](const auto& entry) {
    auto is_about = [&](const Wait& wait) { return wait.what == entry.first; };
    return entry.first == kDeadlock ? waits_.empty() : std::ranges::none_of(waits_, is_about);
  });
}

std::optional<std::string> HangWatch::NoticeOf(const Hang& hang) {
  const Duration lasted = hang.wait.lasted;
  if (policy_.notice == Duration::zero() || lasted < policy_.notice) return std::nullopt;
  if (!NamesCause(hang)) return std::nullopt;
  std::string about = hang.is_deadlock ? kDeadlock : hang.wait.what;
  std::string signature = SignatureOf(hang);
  auto [shown, is_new] = shown_.try_emplace(about, Shown{signature, lasted});
  if (!is_new) {
    bool has_begun_again = lasted < shown->second.lasted;
    bool has_doubled = lasted >= 2 * shown->second.lasted;
    bool has_changed =
        signature != shown->second.signature && lasted >= shown->second.lasted + policy_.notice;
    if (!has_begun_again && !has_doubled && !has_changed) return std::nullopt;
    shown->second = {signature, lasted};
  }
  return Words(hang);
}

// A key may be set by any rank, and one that waits may be about to do so. If no worker of the job
// works, it never will; of several such ranks, the stacks decide.
std::optional<HangVerdict> HangWatch::VerdictOf(const Hang& hang) const {
  if (!policy_.timeout || hang.wait.lasted < *policy_.timeout) return std::nullopt;
  if (!NamesCause(hang)) return std::nullopt;
  const bool is_guess = hang.wait.kind == WaitKind::kStoreKey;
  const bool is_still = is_guess && last_work_ && HasStoodStill(*last_look_);
  const bool spares_weak = is_guess && !(is_still && hang.suspects.size() == 1);
  HangVerdict verdict{.text = Words(hang)};
  const auto causes = hang.is_deadlock ? MostAwaited(waits_, hang.suspects) : hang.suspects;
  for (int rank : hang.suspects) {
    Condition condition = conditions_.at(rank);
    if (!MayHang(condition) || HasMovedWithin(rank, *policy_.timeout / 2)) return std::nullopt;
    if (is_guess && condition == Condition::kBusy) return std::nullopt;
    bool is_weak = condition == Condition::kWaits || condition == Condition::kUnknown;
    if ((spares_weak && is_weak) || !causes.contains(rank)) continue;
    verdict.causes[rank] = CauseInWords(hang, rank);
    verdict.witnesses.push_back(rank);
  }
  if (is_guess && verdict.causes.empty() && !is_still) return std::nullopt;
  verdict.needs_stacks = is_guess && verdict.causes.empty();
  for (int rank : hang.wait.waiters) {
    if (std::ranges::find(verdict.witnesses, rank) != verdict.witnesses.end()) continue;
    verdict.witnesses.push_back(rank);
    break;
  }
  return verdict;
}

bool HangWatch::HasMovedWithin(int rank, Duration time) const {
  const auto& moved_at = counters_.at(rank).moved_at;
  return moved_at && *last_look_ - *moved_at < time;
}

bool HangWatch::UsesLibrary() const {
  return !seen_.empty() || std::ranges::any_of(now_, [](const auto& entry) {
    const WorkerSample& sample = entry.second;
    const bool is_idle = sample.uses_library && !sample.store_wait;
    return is_idle || !sample.awaited.empty();
  });
}

// The work of all must have been read at this look, unless /proc does not answer.
bool HangWatch::HasStoodStill(TimePoint now) const {
  const Duration quiet = Quiet(now);
  const bool is_read = std::ranges::all_of(now_, [](const auto& entry) {
    return entry.second.work || entry.second.has_ended || entry.second.pid == 0;
  });
  if (is_read || !last_work_) return quiet >= *policy_.timeout;
  return quiet >= *policy_.timeout + *policy_.timeout / kWorkReadings + kMaxReading;
}

HangVerdict HangWatch::Blaming(const std::set<int>& ranks, const std::string& still) const {
  HangVerdict verdict{.text = still};
  for (const auto& [rank, condition] : conditions_) {
    const bool waits = condition == Condition::kWaits || condition == Condition::kUnknown;
    if (!waits || ranks.contains(rank)) continue;
    verdict.witnesses.push_back(rank);
    break;
  }
  for (int rank : ranks) {
    verdict.causes[rank] =
        ConditionInWords(now_.at(rank), conditions_.at(rank)).substr(3) + "; " + still;
    verdict.witnesses.push_back(rank);
  }
  if (!ranks.empty()) verdict.text += "; " + SuspectsInWords(ranks, "");
  return verdict;
}

// A program without librankrun does not show what it waits for. It hangs if none of its workers
// has done anything for the whole time. Workers that wait for others of their kind are no causes,
// unless all others wait for one of them.
std::optional<HangVerdict> HangWatch::VerdictOnStillness(TimePoint now) const {
  if (!policy_.timeout || UsesLibrary() || now_.empty()) return std::nullopt;
  if (!HasStoodStill(now)) return std::nullopt;
  const std::string still = "no worker has made progress for " + FormatSeconds(Quiet(now));
  std::set<int> suspects;
  std::set<int> ended;
  for (const auto& [rank, condition] : conditions_) {
    if (condition == Condition::kNotStarted || condition == Condition::kSaving) return std::nullopt;
    if (condition == Condition::kEnded) {
      ended.insert(rank);
    } else if (condition != Condition::kWaits && condition != Condition::kUnknown) {
      suspects.insert(rank);
    }
  }
  if (!suspects.empty()) return Blaming(suspects, still);
  if (auto rank = AwaitedByAll(now_)) {
    return Blaming({*rank}, "all others wait for its data; " + still);
  }
  HangVerdict verdict = Blaming(ended, still);
  verdict.needs_stacks = true;
  return verdict;
}

}  // namespace rankrun::agent

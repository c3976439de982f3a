#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/health/condition.h"
#include "agent/health/early_end.h"
#include "agent/health/progress.h"
#include "agent/health/wait_graph.h"
#include "agent/health/worker_sample.h"
#include "base/clock.h"

namespace rankrun::agent {

struct HangPolicy {
  Duration notice = std::chrono::seconds(10);  // wait of a worker before a notice; 0: no notices
  std::optional<Duration> timeout{};           // wait of a worker before the verdict; empty: none
  bool looks_always =
      true;  // not only while somebody waits: a gap means that the agent was stopped
};

// The end of an attempt whose workers hang.
struct HangVerdict {
  // By global rank: why this worker is a cause. Empty: no worker is known to be one.
  std::map<int, std::string> causes{};
  std::string text;              // the whole
  int reporter = 0;              // without causes: a rank whose node ends the attempt
  std::vector<int> witnesses{};  // ranks whose stacks explain the hang: the causes and one victim
  bool needs_stacks = false;     // the stacks of all may show a cause, or a better one
};

struct HangFindings {
  std::vector<std::string> notices{};
  std::optional<HangVerdict> verdict{};  // at most once in an attempt
};

// Roll call over the workers of a job: finds those for which others wait, and says so once for
// each hang, again when it has changed or has lasted twice as long. While no wait is visible, it
// reports only workers that make no steps although others have ended. Pure.
class HangWatch {
 public:
  explicit HangWatch(const HangPolicy& policy) : policy_(policy), early_ends_(policy.notice) {}

  // A new attempt begins.
  void BeginAttempt(TimePoint now);
  // Waits from before this moment do not count, because the workers were stopped.
  void StartOver(TimePoint now) { began_ = now; }

  // Cuts all waits to the time that counts.
  void LimitTimes(std::vector<WorkerSample>& samples, TimePoint now) const;

  // Whether Look needs the facts of /proc to judge these samples.
  bool NeedsFacts(const std::vector<WorkerSample>& samples, TimePoint now);

  // Whether Look also needs their work, which costs more: a few times in the time of a verdict,
  // while the workers seem to stand still.
  bool NeedsWork(TimePoint now) const;

  // Half of the shorter limit: waits from here on are looked into, and a worker that has moved
  // since then is not still.
  Duration Patience() const;

  // `samples` has all workers of the job, sorted by global rank. A sample that an earlier look has
  // had shows no work.
  HangFindings Look(std::vector<WorkerSample> samples, TimePoint now);

  // Returns why some workers still run long after others have ended, as the last look shows it. The
  // causes are the ranks that others wait for, or else all that run. It needs stacks if no wait is
  // seen, and no worker has made progress since `since`.
  HangVerdict JudgeUnfinished(TimePoint since) const;

  // Returns which ranks have ended although others wait for them; nothing if none is seen.
  std::optional<std::string> AwaitedEnd() const;

 private:
  struct Counters {
    TimePoint taken{};
    Duration cpu_time{};
    uint64_t operations = 0;
    std::optional<uint64_t> io_bytes{};
    uint64_t store_changes = 0;
    bool is_in_kernel = false;
    RecentWork work{};
    std::optional<TimePoint> moved_at{}, was_off_store{};  // at the last look of that kind
    std::optional<WorkFacts> facts{};                      // the last that were read
    TimePoint facts_taken{};
    bool calls_peer = false;  // its main thread, when they were read
    std::vector<ConnectionTime> connections{};
  };
  struct Hang {
    Wait wait;               // the longest one
    std::set<int> suspects;  // of `wait`; empty: nobody is known
    bool is_deadlock = false;
  };

  void Update(std::vector<WorkerSample>& samples, TimePoint now);
  void LimitStoreWait(WorkerSample& sample, TimePoint now);
  void UpdateOne(const WorkerSample& sample, TimePoint now);
  bool UpdateWork(const WorkerSample& sample, TimePoint now, Counters& counters);
  void NoteExchanges(TimePoint now);
  Duration Quiet(TimePoint now) const { return now - std::max(last_progress_, began_); }
  bool HasStoodStill(TimePoint now) const;
  std::set<int> Halted() const;
  std::vector<Hang> FindHangs() const;
  Duration ShortestLimit() const;

  static bool NamesCause(const Hang& hang);
  void ForgetOldNotices();
  std::optional<std::string> NoticeOf(const Hang& hang);
  std::optional<std::string> NoticeOfEarlyEnd(const std::vector<Hang>& hangs);
  std::optional<HangVerdict> VerdictOf(const Hang& hang) const;
  std::optional<HangVerdict> VerdictOnStillness(TimePoint now) const;
  std::optional<HangVerdict> VerdictOnAwaited(const EarlyEnd& end) const;
  HangVerdict Blaming(const std::set<int>& ranks, const std::string& still) const;
  bool HasMovedWithin(int rank, Duration time) const;
  bool UsesLibrary() const;

  std::string Words(const Hang& hang) const;
  std::string AwaitedEndWords(const Hang& hang, const std::set<int>& ended) const;
  std::string CauseInWords(const Hang& hang, int rank) const;
  std::string DeadlockWords(const Hang& hang) const;
  std::string SuspectsInWords(const std::set<int>& suspects, const std::string& group) const;
  std::string PlaceOf(int rank, const std::string& group) const;
  std::string SignatureOf(const Hang& hang) const;

  const HangPolicy policy_;
  TimePoint began_{};  // waits count from here on
  std::optional<TimePoint> last_look_{};
  TimePoint last_progress_{};             // of any worker
  std::optional<TimePoint> last_work_{};  // that was read
  bool has_judged_ = false;
  SeenMembers seen_;
  std::map<int, Counters> counters_;     // by global rank
  std::map<int, WorkerSample> now_;      // samples of this look
  std::map<int, Condition> conditions_;  // likewise
  std::vector<Wait> waits_;              // likewise
  std::set<int> deadlocked_;             // likewise
  struct Shown {
    std::string signature;
    Duration lasted;
  };
  std::map<std::string, Shown> shown_;  // notices by the wait that they are about
  EarlyEndNotices early_ends_;
};

}  // namespace rankrun::agent

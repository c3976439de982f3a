#include "agent/health/hang_watch.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint8_t kAllReduce = 1;
constexpr uint8_t kBroadcast = 3;
constexpr uint8_t kBarrier = 9;

GroupActivity In(uint64_t number, Duration since, const std::string& name = "world", int size = 4,
                 uint8_t kind = kBarrier) {
  return {.name = name,
          .size = size,
          .last = {.kind = kind, .number = number, .count = 16, .fingerprint = kind},
          .completed = number - 1,
          .is_under_way = true,
          .since_entered = since};
}

GroupActivity After(uint64_t number, const std::string& name = "world", int size = 4) {
  GroupActivity group = In(number, {}, name, size);
  group.completed = number;
  group.is_under_way = false;
  return group;
}

ProcessFacts Waits() { return {.state = 'S', .call = CallKind::kLock, .call_name = "futex"}; }

// Four ranks in a barrier that has lasted `since`; tests change some of them.
std::vector<WorkerSample> FourInBarrier(Duration since) {
  std::vector<WorkerSample> samples;
  for (int rank = 0; rank < 4; ++rank) {
    samples.push_back({.global_rank = rank,
                       .local_rank = rank,
                       .pid = 100 + rank,
                       .groups = {In(7, since)},
                       .process = Waits()});
  }
  return samples;
}

TimePoint At(Duration time) { return TimePoint(seconds(1'000)) + time; }

class HangWatchTest : public ::testing::Test {
 protected:
  HangWatchTest() { watch_.BeginAttempt(At({})); }

  // Looks twice, because work shows only as a difference of two looks.
  HangFindings Look(const std::vector<WorkerSample>& samples, Duration time = seconds(11)) {
    HangFindings first = watch_.Look(samples, At(time - milliseconds(10)));
    return first.verdict ? first : watch_.Look(samples, At(time));
  }
  std::vector<std::string> Notices(const std::vector<WorkerSample>& samples) {
    HangWatch watch({.notice = seconds(10)});
    watch.BeginAttempt(At({}));
    watch.Look(samples, At(seconds(9)));
    return watch.Look(samples, At(seconds(11))).notices;
  }
  HangVerdict Verdict(const std::vector<WorkerSample>& samples, Duration time = seconds(31)) {
    return Look(samples, time).verdict.value_or(HangVerdict{.text = "no verdict"});
  }
  // Looks at the same samples each second.
  std::optional<HangVerdict> VerdictOnStillness(const std::vector<WorkerSample>& samples) {
    std::optional<HangVerdict> verdict;
    for (int second = 0; !verdict && second < 100; ++second) {
      verdict = watch_.Look(samples, At(seconds(second))).verdict;
    }
    return verdict;
  }
  std::string Notice(const std::vector<WorkerSample>& samples) {
    auto notices = Notices(samples);
    return notices.empty() ? "" : notices.front();
  }

  HangWatch watch_{{.notice = seconds(10), .timeout = seconds(30)}};
};

TEST_F(HangWatchTest, NamesARankThatIsStopped) {
  auto samples = FourInBarrier(seconds(11));
  samples[3].groups = {After(6)};
  samples[3].process = ProcessFacts{.state = 'T'};
  EXPECT_EQ(Notice(samples),
            "ranks 0-2 wait in Barrier #7 of world for rank 3, which is stopped (SIGSTOP) after "
            "Barrier #6 of world; for 11.0 s");
}

TEST_F(HangWatchTest, NamesARankThatIsStoppedInsideTheCollective) {
  auto samples = FourInBarrier(seconds(11));
  samples[2].process = ProcessFacts{.state = 'T'};
  EXPECT_EQ(Notice(samples),
            "ranks 0-3 wait in Barrier #7 of world for rank 2, which is stopped (SIGSTOP) in "
            "Barrier #7 of world; for 11.0 s");
}

TEST_F(HangWatchTest, ARankThatIsInTheKernelAtOneLookIsNotStuckThere) {
  auto samples = FourInBarrier(seconds(5));
  samples[1].awaited = "a message from global rank 2 (tag 0)";
  samples[1].awaited_rank = 2;
  samples[1].awaited_for = seconds(31);
  samples[2].awaited = "a message from global rank 3 (tag 0)";
  samples[2].awaited_rank = 3;
  samples[2].awaited_for = seconds(31);
  samples[3].groups = {After(6)};
  samples[3].process = ProcessFacts{.state = 'T'};
  watch_.Look(samples, At(seconds(29)));
  samples[2].process = ProcessFacts{.state = 'D', .wait_channel = "io_schedule"};
  auto verdict = watch_.Look(samples, At(seconds(31))).verdict;
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->causes.contains(2)) << verdict->text;
  EXPECT_TRUE(verdict->causes.contains(3)) << verdict->text;
}

TEST_F(HangWatchTest, ARankThatReadsFromASlowDiskMoves) {
  auto samples = FourInBarrier(seconds(31));
  samples[3].groups = {After(6)};
  samples[3].process = ProcessFacts{.state = 'D', .call = CallKind::kFile, .call_name = "read"};
  for (int second = 25; second <= 40; ++second) {
    samples[3].process->io_bytes += 1'000'000;
    EXPECT_FALSE(watch_.Look(samples, At(seconds(second))).verdict) << second;
  }
}

struct Form {
  ProcessFacts facts;
  std::string words;
};

TEST_F(HangWatchTest, SaysWhatTheRankDoesInstead) {
  const Form kForms[] = {
      {{.state = 'S', .call = CallKind::kSleep, .call_name = "clock_nanosleep"},
       "is sleeping (clock_nanosleep)"},
      {{.state = 'S', .call = CallKind::kFile, .call_name = "read", .file = "/tmp/fifo"},
       "is reading /tmp/fifo (read)"},
      {{.state = 'S', .call = CallKind::kFile, .call_name = "write", .file = "/dev/pts/1"},
       "is writing /dev/pts/1 (write)"},
      {{.state = 'D',
        .wait_channel = "nfs_wait",
        .call = CallKind::kFile,
        .call_name = "read",
        .file = "/nfs/data"},
       "is stuck in the kernel (state D in nfs_wait) in read of /nfs/data"},
      {Waits(), "is waiting for a lock (futex)"},
      {{.state = 'S', .call = CallKind::kPeer, .call_name = "recvfrom", .file = "socket:[7]"},
       "is waiting for a connection (recvfrom)"},
      {{.state = 'S', .call = CallKind::kChild, .call_name = "wait4"},
       "is waiting for a child process (wait4)"},
      {{.state = 'S', .call = CallKind::kPoll, .call_name = "epoll_wait"},
       "is waiting for connections (epoll_wait)"},
      {{.state = 'R'}, "is spinning or computing (uses the processor)"},
      {{.state = 'S'}, "is in another part of its program"},
  };
  for (const Form& form : kForms) {
    auto samples = FourInBarrier(seconds(11));
    samples[3].groups = {After(6)};
    samples[3].process = form.facts;
    EXPECT_EQ(Notice(samples), "ranks 0-2 wait in Barrier #7 of world for rank 3, which " +
                                   form.words + " after Barrier #6 of world; for 11.0 s");
  }
}

TEST_F(HangWatchTest, ASpinningRankIsTheCauseAndSoIsASleepingOne) {
  auto samples = FourInBarrier(seconds(31));
  samples[3].groups = {After(6)};
  samples[3].process = ProcessFacts{.state = 'R'};
  watch_.Look(samples, At(seconds(29)));
  samples[3].cpu_time = seconds(1);
  HangFindings findings = watch_.Look(samples, At(seconds(31)));
  ASSERT_TRUE(findings.verdict);
  ASSERT_EQ(findings.verdict->causes.size(), 1U);
  EXPECT_EQ(findings.verdict->causes.at(3),
            "spinning or computing (uses the processor) after Barrier #6 of world; ranks 0-2 wait "
            "in Barrier #7 of world for 31.0 s");
  EXPECT_EQ(findings.verdict->witnesses, (std::vector<int>{3, 0}));
}

TEST_F(HangWatchTest, NobodyIsReportedWhileNobodyWaits) {
  std::vector<WorkerSample> samples = FourInBarrier({});
  for (auto& sample : samples) {
    sample.groups = {After(6)};
    sample.process = ProcessFacts{.state = 'S', .call = CallKind::kSleep};
  }
  for (int second = 1; second < 300; ++second) {
    HangFindings findings = watch_.Look(samples, At(seconds(second)));
    EXPECT_TRUE(findings.notices.empty());
    EXPECT_FALSE(findings.verdict);
  }
}

TEST_F(HangWatchTest, AShortWaitIsNotReported) {
  auto samples = FourInBarrier(seconds(9));
  samples[3].groups = {After(6)};
  EXPECT_TRUE(Notices(samples).empty());
}

TEST_F(HangWatchTest, RepeatsANoticeWhenItsTimeHasDoubledOrTheFactsChange) {
  auto at = [&](int second, char state) {
    auto samples = FourInBarrier(seconds(second));
    samples[3].groups = {After(6)};
    samples[3].process = ProcessFacts{.state = state, .call = CallKind::kSleep};
    return watch_.Look(samples, At(seconds(second))).notices.size();
  };
  size_t notices = 0;
  for (int second = 1; second <= 45; ++second) notices += at(second, 'S');
  EXPECT_EQ(notices, 3U) << "at 10, 20 and 40 s";
  for (int second = 46; second <= 49; ++second) EXPECT_EQ(at(second, 'T'), 0U);
  EXPECT_EQ(at(50, 'T'), 1U) << "a change, but not at once";
}

TEST_F(HangWatchTest, NamesBothSidesOfADeadlockOfGroups) {
  std::vector<WorkerSample> samples(2);
  samples[0] = {
      .global_rank = 0, .pid = 1, .groups = {In(3, seconds(12), "A", 2), After(5, "B", 2)}};
  samples[1] = {
      .global_rank = 1, .pid = 2, .groups = {After(2, "A", 2), In(6, seconds(11), "B", 2)}};
  EXPECT_EQ(Notice(samples),
            "dead-lock: rank 0 waits in Barrier #3 of A for rank 1; rank 1 waits in Barrier #6 of "
            "B for rank 0; for 11.0 s");
}

TEST_F(HangWatchTest, NamesARingOfReceives) {
  std::vector<WorkerSample> samples;
  for (int rank = 0; rank < 4; ++rank) {
    int peer = (rank + 3) % 4;
    samples.push_back({.global_rank = rank,
                       .pid = 1,
                       .groups = {After(6)},
                       .awaited = "a message from global rank " + std::to_string(peer) + " (tag 0)",
                       .awaited_rank = peer,
                       .awaited_for = seconds(11)});
  }
  EXPECT_EQ(Notice(samples),
            "dead-lock: rank 0 waits for a message from global rank 3 (tag 0); rank 1 waits for a "
            "message from global rank 0 (tag 0); rank 2 waits for a message from global rank 1 "
            "(tag 0); rank 3 waits for a message from global rank 2 (tag 0); for 11.0 s");
  HangVerdict verdict = [&] {
    for (auto& sample : samples) sample.awaited_for = seconds(31);
    return Verdict(samples);
  }();
  EXPECT_EQ(verdict.causes.size(), 4U);
}

TEST_F(HangWatchTest, OfADeadlockTheRankThatIsElsewhereIsTheCause) {
  std::vector<WorkerSample> samples;
  for (int rank : {0, 2, 3}) {
    samples.push_back({.global_rank = rank, .pid = 1, .groups = {In(4, seconds(31))}});
  }
  samples.insert(samples.begin() + 1, {.global_rank = 1,
                                       .pid = 1,
                                       .groups = {After(3)},
                                       .awaited = "a message from global rank 0 (tag 7)",
                                       .awaited_rank = 0,
                                       .awaited_for = seconds(31)});
  HangVerdict verdict = Verdict(samples);
  ASSERT_EQ(verdict.causes.size(), 1U);
  EXPECT_TRUE(verdict.causes.contains(1));
}

TEST_F(HangWatchTest, ARankBehindADeadlockIsNoPartOfIt) {
  std::vector<WorkerSample> samples(3);
  samples[0] = {
      .global_rank = 0, .pid = 1, .awaited = "x", .awaited_rank = 1, .awaited_for = seconds(31)};
  samples[1] = {
      .global_rank = 1, .pid = 1, .awaited = "y", .awaited_rank = 0, .awaited_for = seconds(31)};
  samples[2] = {
      .global_rank = 2, .pid = 1, .awaited = "z", .awaited_rank = 0, .awaited_for = seconds(31)};
  HangVerdict verdict = Verdict(samples);
  EXPECT_TRUE(verdict.causes.contains(0));
  EXPECT_TRUE(verdict.causes.contains(1));
  EXPECT_FALSE(verdict.causes.contains(2));
}

TEST_F(HangWatchTest, TheCauseIsAtTheEndOfAChainOfWaits) {
  std::vector<WorkerSample> samples = FourInBarrier(seconds(31));
  samples[2].groups = {After(6)};
  samples[2].awaited = "a message from global rank 3 (tag 7)";
  samples[2].awaited_rank = 3;
  samples[2].awaited_for = seconds(32);
  samples[3].groups = {After(6)};
  samples[3].process = ProcessFacts{.state = 'T'};
  HangVerdict verdict = Verdict(samples);
  ASSERT_EQ(verdict.causes.size(), 1U);
  EXPECT_TRUE(verdict.causes.contains(3));
  EXPECT_EQ(verdict.text,
            "ranks 0, 1 wait in Barrier #7 of world for rank 3, which is stopped (SIGSTOP) after "
            "Barrier #6 of world; for 31.0 s");
}

TEST_F(HangWatchTest, NamesARankThatHasEndedOrLeft) {
  auto samples = FourInBarrier(seconds(11));
  samples[3] = {.global_rank = 3, .has_ended = true};
  EXPECT_EQ(Notice(samples),
            "ranks 0-2 wait in Barrier #7 of world for rank 3, which is no longer running (exit "
            "code 0); for 11.0 s");
  watch_.Look(FourInBarrier(seconds(5)), At(seconds(5)));
  samples = FourInBarrier(seconds(11));
  samples[3].groups = {};
  auto notices = watch_.Look(samples, At(seconds(11))).notices;
  ASSERT_EQ(notices.size(), 0U) << "the agent itself was stopped between these looks";
  for (int second = 12; second <= 21; ++second) {
    notices = watch_.Look(samples, At(seconds(second))).notices;
  }
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_NE(notices[0].find("rank 3, which is waiting for a lock (futex) and has left world"),
            std::string::npos)
      << notices[0];
}

TEST_F(HangWatchTest, NamesTheMinorityThatIsInAnotherCollective) {
  auto samples = FourInBarrier(seconds(11));
  samples[2].groups = {In(7, seconds(11), "world", 4, kAllReduce)};
  EXPECT_EQ(Notice(samples),
            "ranks 0, 1, 3 wait in Barrier #7 of world for rank 2, which is waiting for a lock "
            "(futex) in AllReduce #7 (16 x float32, sum) of world; for 11.0 s");
}

TEST_F(HangWatchTest, BlamesNobodyWithoutAMajority) {
  auto samples = FourInBarrier(seconds(31));
  for (int rank : {0, 1}) {
    samples[static_cast<size_t>(rank)].groups = {In(7, seconds(31), "world", 4, kBroadcast)};
  }
  std::string text = Notice(samples);
  EXPECT_TRUE(text.starts_with("dead-lock: ranks 0, 1 wait in Broadcast #7")) << text;
}

TEST_F(HangWatchTest, BlamesNobodyIfAllHaveEntered) {
  auto samples = FourInBarrier(seconds(31));
  HangVerdict verdict = Verdict(samples);
  EXPECT_TRUE(verdict.causes.empty());
  EXPECT_EQ(verdict.text,
            "ranks 0-3 wait in Barrier #7 of world: all of its ranks have entered it, and nothing "
            "moves; for 31.0 s");
  EXPECT_FALSE(verdict.needs_stacks);
}

TEST_F(HangWatchTest, ASavingRankIsNoCause) {
  auto samples = FourInBarrier(seconds(31));
  samples[0].groups = {After(6)};
  samples[0].is_saving = true;
  HangFindings findings = Look(samples, seconds(31));
  EXPECT_FALSE(findings.verdict);
  EXPECT_NE(Notice(samples).find("rank 0, which is saving a checkpoint"), std::string::npos);
}

TEST_F(HangWatchTest, ARankAtABreakpointHoldsUpNobody) {
  auto samples = FourInBarrier(seconds(500));
  samples[3].groups = {After(6)};
  samples[3].awaited = std::string(kDebuggerWait) + "train.cc:7";
  for (int second = 1; second < 500; ++second) {
    HangFindings findings = watch_.Look(samples, At(seconds(second)));
    EXPECT_TRUE(findings.notices.empty());
    EXPECT_FALSE(findings.verdict);
  }
  samples[3].awaited.clear();
  EXPECT_TRUE(watch_.Look(samples, At(seconds(505))).notices.empty()) << "the time begins anew";
}

TEST_F(HangWatchTest, ARankInADebuggerOfItsOwnHoldsUpNobody) {
  auto samples = FourInBarrier(seconds(500));
  samples[3].groups = {After(6)};
  samples[3].awaited = std::string(kUserWait) + "train.py:7";
  samples[3].awaited_for = seconds(500);
  samples[3].process =
      ProcessFacts{.state = 'S', .call = CallKind::kFile, .call_name = "read", .file = "/dev/tty"};
  for (int second = 1; second < 500; ++second) {
    HangFindings findings = watch_.Look(samples, At(seconds(second)));
    EXPECT_TRUE(findings.notices.empty());
    EXPECT_FALSE(findings.verdict);
  }
}

TEST_F(HangWatchTest, ARankThatMakesProgressIsSlow) {
  std::string notice;
  for (int second = 1; second <= 60; ++second) {
    auto samples = FourInBarrier(seconds(second));
    samples[3].groups = {After(6), After(static_cast<uint64_t>(second), "other", 2)};
    HangFindings findings = watch_.Look(samples, At(seconds(second)));
    EXPECT_FALSE(findings.verdict);
    if (!findings.notices.empty()) notice = findings.notices[0];
  }
  EXPECT_NE(notice.find("rank 3, which is slow, but makes progress"), std::string::npos) << notice;
}

TEST_F(HangWatchTest, NamesTheRankThatHasNotSetAKey) {
  std::vector<WorkerSample> samples(4);
  for (int rank = 0; rank < 4; ++rank) {
    samples[static_cast<size_t>(rank)] = {.global_rank = rank, .pid = 1, .process = Waits()};
    if (rank > 0) samples[static_cast<size_t>(rank)].store_wait = {"init/0", seconds(11)};
  }
  samples[0].process =
      ProcessFacts{.state = 'S', .call = CallKind::kSleep, .call_name = "nanosleep"};
  EXPECT_EQ(Notice(samples),
            "ranks 1-3 wait for key init/0 of the store, which rank 0 has not set; rank 0 is "
            "sleeping (nanosleep); for 11.0 s");
}

// Rank 0 has a collective under way, and waits for it after `unawaited`.
std::vector<WorkerSample> WorkUnderWay(Duration since, Duration unawaited) {
  std::vector<WorkerSample> samples(2);
  samples[0] = {.global_rank = 0, .pid = 1, .groups = {In(1, since, "world", 2)}};
  samples[0].groups[0].unawaited = unawaited;
  samples[0].process = Waits();
  samples[1] = {.global_rank = 1, .pid = 1, .groups = {After(0, "world", 2)}};
  samples[1].process =
      ProcessFacts{.state = 'S', .call = CallKind::kSleep, .call_name = "nanosleep"};
  return samples;
}

TEST_F(HangWatchTest, WorkForWhichNobodyWaitsIsNoWait) {
  for (int second = 1; second < 100; ++second) {
    HangFindings findings =
        watch_.Look(WorkUnderWay(seconds(second), seconds(second)), At(seconds(second)));
    EXPECT_FALSE(findings.verdict);
    EXPECT_TRUE(findings.notices.empty()) << findings.notices[0];
  }
}

TEST_F(HangWatchTest, WorkIsAWaitSinceAThreadWaitsForIt) {
  EXPECT_EQ(Notice(WorkUnderWay(seconds(11), seconds(2))), "");
  EXPECT_EQ(Notices(WorkUnderWay(seconds(11), Duration(1))).size(), 1U);
  EXPECT_TRUE(Verdict(WorkUnderWay(seconds(31), Duration(1))).causes.contains(1));
}

TEST_F(HangWatchTest, ARankThatIsInWorkIsNotLate) {
  auto samples = WorkUnderWay(seconds(31), seconds(31));
  samples[1].groups = {In(1, seconds(31), "world", 2)};
  EXPECT_FALSE(Verdict(samples).causes.contains(0));
}

TEST_F(HangWatchTest, AWaitAtTheStoreBeginsAfterTheLastLookAtWhichTheMainThreadDidAnythingElse) {
  const HangPolicy policy{.notice = seconds(10)};
  HangWatch watch(policy);
  watch.BeginAttempt(At({}));
  std::vector<WorkerSample> samples(2);
  samples[0] = {.global_rank = 0, .pid = 1};
  samples[0].process = ProcessFacts{.state = 'S', .call = CallKind::kSleep};
  for (int second = 1; second < 60; ++second) {
    samples[1] = {.global_rank = 1, .pid = 1, .process = Waits()};
    // Its main thread sleeps at each fifth look.
    if (second % 5 > 0) samples[1].store_wait = StoreWait{"news", seconds(second)};
    EXPECT_TRUE(watch.Look(samples, At(seconds(second))).notices.empty()) << second;
  }
  for (int second = 60; second < 65; ++second) {
    samples[1].store_wait = StoreWait{"news", seconds(second)};
    EXPECT_TRUE(watch.Look(samples, At(seconds(second))).notices.empty()) << second;
  }
  samples[1].store_wait = StoreWait{"news", seconds(66)};
  EXPECT_EQ(watch.Look(samples, At(seconds(66))).notices.size(), 1U);
}

TEST_F(HangWatchTest, ARankWhoseMainThreadComputesDoesNotWaitAtTheStore) {
  std::vector<WorkerSample> samples(2);
  samples[0] = {.global_rank = 0, .pid = 1, .process = ProcessFacts{.state = 'R'}};
  for (int second = 1; second < 60; ++second) {
    samples[1] = {.global_rank = 1, .pid = 1, .cpu_time = seconds(second)};
    samples[1].process = ProcessFacts{.state = 'R'};
    samples[1].store_wait = StoreWait{"news", seconds(second)};
    HangFindings findings = watch_.Look(samples, At(seconds(second)));
    EXPECT_TRUE(findings.notices.empty()) << second;
    EXPECT_FALSE(findings.verdict);
  }
}

TEST_F(HangWatchTest, AProgramOfTheLibraryMayBeIdle) {
  std::vector<WorkerSample> samples(2);
  for (int rank = 0; rank < 2; ++rank) {
    samples[static_cast<size_t>(rank)] = {.global_rank = rank,
                                          .pid = 1,
                                          .uses_library = true,
                                          .process = Waits(),
                                          .work = WorkFacts{.knows_connections = true}};
  }
  EXPECT_FALSE(VerdictOnStillness(samples));
  for (WorkerSample& sample : samples) sample.store_wait = StoreWait{"never", seconds(100)};
  EXPECT_TRUE(VerdictOnStillness(samples)) << "all wait for a key that nobody sets";
}

TEST_F(HangWatchTest, AProgramWithoutTheLibraryIsNotIdle) {
  std::vector<WorkerSample> samples(2);
  for (int rank = 0; rank < 2; ++rank) {
    samples[static_cast<size_t>(rank)] = {.global_rank = rank,
                                          .pid = 1,
                                          .process = Waits(),
                                          .work = WorkFacts{.knows_connections = true}};
  }
  EXPECT_TRUE(VerdictOnStillness(samples));
}

TEST_F(HangWatchTest, ARankThatMayBeComputingAKeyIsNoCause) {
  for (const ProcessFacts& facts :
       {ProcessFacts{.state = 'R'}, Waits(),
        ProcessFacts{.state = 'S', .call = CallKind::kPeer, .call_name = "recvfrom"}}) {
    HangWatch watch({.timeout = seconds(30)});
    watch.BeginAttempt(At({}));
    std::vector<WorkerSample> samples(2);
    samples[0] = {.global_rank = 0, .pid = 1, .groups = {After(1, "world", 2)}, .process = facts};
    samples[1] = {.global_rank = 1, .pid = 1, .store_wait = StoreWait{"data", seconds(40)}};
    for (int second = 1; second < 60; ++second) {
      EXPECT_FALSE(watch.Look(samples, At(seconds(second))).verdict);
    }
  }
}

// Ranks before `waiters` wait for a lock; the others wait for a key of the store. All have work.
std::vector<WorkerSample> WaitersForAKey(int size, int waiters) {
  std::vector<WorkerSample> samples;
  for (int rank = 0; rank < size; ++rank) {
    samples.push_back({.global_rank = rank,
                       .pid = 1,
                       .groups = {After(1, "world", size)},
                       .process = Waits(),
                       .work = WorkFacts{.knows_connections = true}});
    if (rank >= waiters) samples.back().store_wait = StoreWait{"plan", seconds(40)};
  }
  return samples;
}

TEST_F(HangWatchTest, TheOnlyRankThatHasNotSetAKeyIsTheCauseIfNobodyWorks) {
  const auto verdict = VerdictOnStillness(WaitersForAKey(3, 1));
  ASSERT_TRUE(verdict);
  ASSERT_EQ(verdict->causes.size(), 1U);
  EXPECT_TRUE(verdict->causes.at(0).starts_with("waiting for a lock (futex)"))
      << verdict->causes.at(0);
}

TEST_F(HangWatchTest, OfSeveralThatHaveNotSetAKeyTheStacksDecideIfNobodyWorks) {
  const auto verdict = VerdictOnStillness(WaitersForAKey(4, 2));
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->causes.empty());
  EXPECT_TRUE(verdict->needs_stacks);
}

TEST_F(HangWatchTest, ARankThatHasNotSetAKeyIsNoCauseWhileAnyWorks) {
  auto samples = WaitersForAKey(3, 1);
  for (int second = 0; second < 100; ++second) {
    if (second % 20 == 0) samples[0].work->received_bytes += 5'000;
    EXPECT_FALSE(watch_.Look(samples, At(seconds(second))).verdict) << second;
  }
}

TEST_F(HangWatchTest, AProgramWithoutTheLibraryHangsIfNobodyMakesProgress) {
  std::vector<WorkerSample> samples(3);
  for (int rank = 0; rank < 3; ++rank) {
    samples[static_cast<size_t>(rank)] = {.global_rank = rank, .pid = 1, .process = Waits()};
  }
  samples[1].process =
      ProcessFacts{.state = 'S', .call = CallKind::kSleep, .call_name = "clock_nanosleep"};
  std::optional<HangVerdict> verdict;
  int seconds_passed = 0;
  for (; !verdict && seconds_passed < 100; ++seconds_passed) {
    verdict = watch_.Look(samples, At(seconds(seconds_passed))).verdict;
  }
  ASSERT_TRUE(verdict);
  EXPECT_EQ(seconds_passed, 31);
  ASSERT_EQ(verdict->causes.size(), 1U);
  EXPECT_EQ(verdict->causes.at(1),
            "sleeping (clock_nanosleep); no worker has made progress for 30.0 s");
  EXPECT_EQ(verdict->witnesses, (std::vector<int>{0, 1}));
  EXPECT_FALSE(verdict->needs_stacks);
}

TEST_F(HangWatchTest, AVerdictNeedsStacksIfAllWorkersWithoutTheLibraryWait) {
  std::vector<WorkerSample> samples(2);
  for (int rank : {0, 1}) {
    samples[static_cast<size_t>(rank)] = {.global_rank = rank, .pid = 1, .process = Waits()};
  }
  const auto verdict = VerdictOnStillness(samples);
  ASSERT_TRUE(verdict);
  EXPECT_TRUE(verdict->causes.empty());
  EXPECT_TRUE(verdict->needs_stacks);
}

TEST_F(HangWatchTest, AVerdictOnWorkersThatHaveEndedNeedsTheStacksOfTheOthers) {
  std::vector<WorkerSample> samples = {{.global_rank = 0, .has_ended = true},
                                       {.global_rank = 1, .pid = 1, .process = Waits()}};
  const auto verdict = VerdictOnStillness(samples);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->causes.count(0), 1U);
  EXPECT_TRUE(verdict->needs_stacks);
}

TEST_F(HangWatchTest, AWorkerThatUsesTheProcessorOrFilesIsProgress) {
  std::vector<WorkerSample> samples = {
      {.global_rank = 0, .pid = 1, .process = Waits()},
      {.global_rank = 1,
       .pid = 1,
       .process = ProcessFacts{.state = 'S', .call = CallKind::kSleep}}};
  for (int second = 0; second < 100; ++second) {
    if (second < 50) {
      samples[0].cpu_time += milliseconds(100);
    } else {
      samples[0].process->io_bytes += 10'000;
    }
    EXPECT_FALSE(watch_.Look(samples, At(seconds(second))).verdict);
  }
}

// Two workers without the library, whose work is read at each look.
std::vector<WorkerSample> TwoSleepers() {
  std::vector<WorkerSample> samples(2);
  for (int rank : {0, 1}) {
    samples[static_cast<size_t>(rank)] = {
        .global_rank = rank,
        .pid = 1,
        .process = ProcessFacts{.state = 'S', .call = CallKind::kSleep},
        .work = WorkFacts{.knows_connections = true, .connections = {{.id = 7}}}};
  }
  return samples;
}

TEST_F(HangWatchTest, SlowWorkersThatExchangeDataDoNotHang) {
  auto samples = TwoSleepers();
  for (int second = 0; second < 200; ++second) {
    const Duration since = seconds(second % 25);
    for (auto& sample : samples) sample.work->connections[0].since_received = since;
    EXPECT_FALSE(watch_.Look(samples, At(seconds(second))).verdict) << second;
  }
}

TEST_F(HangWatchTest, SlowWorkersThatLogDoNotHang) {
  auto samples = TwoSleepers();
  for (int second = 0; second < 200; ++second) {
    if (second % 25 == 0) samples[1].work->written_bytes += 20;
    for (auto& sample : samples) sample.work->connections[0].since_received = seconds(second);
    EXPECT_FALSE(watch_.Look(samples, At(seconds(second))).verdict) << second;
  }
}

TEST_F(HangWatchTest, SlowWorkersThatChangeKeysOfTheStoreDoNotHang) {
  auto samples = TwoSleepers();
  for (int second = 0; second < 200; ++second) {
    if (second % 25 == 0) samples[0].store_changes += 1;
    for (auto& sample : samples) sample.work->connections[0].since_received = seconds(second);
    EXPECT_FALSE(watch_.Look(samples, At(seconds(second))).verdict) << second;
  }
}

TEST_F(HangWatchTest, WorkersThatNoLongerExchangeDataHang) {
  auto samples = TwoSleepers();
  std::optional<HangVerdict> verdict;
  int second = 0;
  for (; !verdict && second < 100; ++second) {
    for (auto& sample : samples) {
      sample.work->wakes += 10;
      sample.work->connections[0].since_received = seconds(std::max(0, second - 40));
    }
    verdict = watch_.Look(samples, At(seconds(second))).verdict;
  }
  EXPECT_EQ(second, 71) << "30 s after the latest data";
}

TEST_F(HangWatchTest, TheWorkerWhoseDataAllOthersWaitForIsTheCause) {
  auto samples = TwoSleepers();
  samples[0].process = ProcessFacts{.state = 'S', .call = CallKind::kPeer};
  samples[0].work->awaited_connection = 7;
  samples[1].process =
      ProcessFacts{.state = 'S', .call = CallKind::kFile, .call_name = "read", .file = "pipe:[9]"};
  for (auto& sample : samples) sample.work->connections[0].since_received = seconds(500);
  const auto verdict = VerdictOnStillness(samples);
  ASSERT_TRUE(verdict);
  ASSERT_EQ(verdict->causes.size(), 1U);
  EXPECT_EQ(
      verdict->causes.at(1),
      "waiting for pipe:[9] (read); all others wait for its data; no worker has made progress "
      "for 30.0 s");
  EXPECT_FALSE(verdict->needs_stacks);
  EXPECT_EQ(verdict->witnesses, (std::vector<int>{0, 1}));
}

TEST_F(HangWatchTest, NoVerdictBeforeTheWorkIsReadOnceMore) {
  auto samples = TwoSleepers();
  for (auto& sample : samples) sample.work->connections.clear();
  watch_.Look(samples, At(seconds(0)));
  auto unread = samples;
  for (auto& sample : unread) sample.work.reset();
  for (int second = 1; second <= 31; ++second) {
    EXPECT_FALSE(watch_.Look(unread, At(seconds(second))).verdict) << second;
  }
  EXPECT_TRUE(watch_.NeedsWork(At(seconds(31))));
  for (auto& sample : samples) sample.work->written_bytes += 1;
  EXPECT_FALSE(watch_.Look(samples, At(seconds(32))).verdict);
}

TEST_F(HangWatchTest, AVerdictIsPossibleIfProcDoesNotAnswer) {
  auto samples = TwoSleepers();
  watch_.Look(samples, At(seconds(0)));
  for (auto& sample : samples) sample.work.reset();
  int second = 1;
  while (second < 100 && !watch_.Look(samples, At(seconds(second))).verdict) ++second;
  EXPECT_EQ(second, 35);
}

TEST_F(HangWatchTest, NeedsWorkATenthOfTheTimeoutAfterTheLastWhileQuiet) {
  auto samples = TwoSleepers();
  EXPECT_FALSE(watch_.NeedsWork(At(seconds(1))));
  for (auto& sample : samples) sample.work.reset();
  watch_.Look(samples, At(seconds(1)));
  EXPECT_FALSE(watch_.NeedsWork(At(seconds(2)))) << "the first look is progress";
  watch_.Look(samples, At(seconds(2)));
  EXPECT_TRUE(watch_.NeedsWork(At(seconds(3))));
  watch_.Look(TwoSleepers(), At(seconds(3)));
  watch_.Look(samples, At(seconds(4)));
  EXPECT_FALSE(watch_.NeedsWork(At(seconds(5))));
  EXPECT_TRUE(watch_.NeedsWork(At(seconds(6))));
  samples[0].cpu_time += seconds(1);
  watch_.Look(samples, At(seconds(7)));
  EXPECT_FALSE(watch_.NeedsWork(At(seconds(8)))) << "a busy worker";
}

TEST_F(HangWatchTest, TheSameSampleShowsNoWorkTwice) {
  auto samples = FourInBarrier(seconds(11));
  samples[3].groups = {After(6)};
  samples[3].process->call = CallKind::kSleep;
  samples[3].process->call_name = "nanosleep";
  samples[3].taken = At(seconds(9));
  watch_.Look(samples, At(seconds(9)));
  samples[3].taken = At(seconds(10));
  samples[3].cpu_time = milliseconds(50);
  watch_.Look(samples, At(seconds(9) + milliseconds(1)));
  HangFindings findings = watch_.Look(samples, At(seconds(11)));
  for (const HangFindings& each : {watch_.Look(samples, At(seconds(12))), findings}) {
    for (const std::string& notice : each.notices) {
      EXPECT_NE(notice.find("sleeping (nanosleep)"), std::string::npos) << notice;
    }
  }
}

TEST_F(HangWatchTest, OneVerdictForAnAttempt) {
  auto samples = FourInBarrier(seconds(31));
  EXPECT_TRUE(Look(samples, seconds(31)).verdict);
  EXPECT_FALSE(watch_.Look(samples, At(seconds(32))).verdict);
  watch_.BeginAttempt(At(seconds(40)));
  EXPECT_FALSE(watch_.Look(samples, At(seconds(41))).verdict) << "waits of the attempt before";
}

TEST_F(HangWatchTest, WaitsWhileTheWorkersWereStoppedDoNotCount) {
  auto samples = FourInBarrier(seconds(100));
  samples[3].groups = {After(6)};
  watch_.StartOver(At(seconds(100)));
  EXPECT_TRUE(watch_.Look(samples, At(seconds(101))).notices.empty());
}

TEST_F(HangWatchTest, NeedsFactsOnlyAfterSomeWaiting) {
  auto samples = FourInBarrier(seconds(4));
  EXPECT_FALSE(watch_.NeedsFacts(samples, At(seconds(8))));
  samples = FourInBarrier(seconds(6));
  EXPECT_TRUE(watch_.NeedsFacts(samples, At(seconds(8))));
  EXPECT_FALSE(HangWatch({.notice = Duration::zero()}).NeedsFacts(samples, At(seconds(8))));
}

TEST_F(HangWatchTest, ARankThatDoesNotExistIsIgnored) {
  auto samples = FourInBarrier(seconds(31));
  for (auto& sample : samples) sample.groups = {};
  samples[0].awaited = "a message from global rank 99 (tag 0)";
  samples[0].awaited_rank = 99;
  samples[0].awaited_for = seconds(31);
  EXPECT_TRUE(Notices(samples).empty());
  EXPECT_FALSE(Look(samples, seconds(31)).verdict);
}

TEST_F(HangWatchTest, GroupsThatShareANameBlameNobody) {
  std::vector<WorkerSample> samples = FourInBarrier(seconds(31));
  for (auto& sample : samples) sample.groups = {In(7, seconds(31), "pair", 2)};
  samples[3].groups = {After(6, "pair", 2)};
  EXPECT_TRUE(Notices(samples).empty());
  EXPECT_FALSE(Look(samples, seconds(31)).verdict);
}

}  // namespace
}  // namespace rankrun::agent

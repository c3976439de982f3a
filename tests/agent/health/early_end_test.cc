#include "agent/health/early_end.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "agent/health/hang_watch.h"
#include "agent/health/stack_suspect.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TimePoint At(Duration time) { return TimePoint(seconds(1'000)) + time; }

WorkerSample Ended(int rank, Duration ago) {
  return {.global_rank = rank, .has_ended = true, .ended_for = ago};
}

WorkerSample Sleeping(int rank) {
  return {.global_rank = rank,
          .pid = 100 + rank,
          .process =
              ProcessFacts{.state = 'S', .call = CallKind::kSleep, .call_name = "clock_nanosleep"}};
}

GroupActivity Barrier(int size, Duration since) {
  return {.name = "world",
          .size = size,
          .last = {.kind = 9, .number = 7, .count = 16, .fingerprint = 9},
          .completed = 6,
          .is_under_way = true,
          .since_entered = since};
}

// Rank 0 has ended; tests change what rank 1 does.
struct EarlyEndTest : ::testing::Test {
  EarlyEndTest() { watch.BeginAttempt(At({})); }

  // Looks each second from the end of rank 0 on, as `step` changes the samples.
  template <typename Step>
  std::vector<std::string> NoticesOf(int seconds_after, Step step) {
    std::vector<std::string> notices;
    for (int second = 0; second <= seconds_after; ++second) {
      samples[0].ended_for = seconds(second);
      step(second);
      auto found = watch.Look(samples, At(seconds(second))).notices;
      notices.insert(notices.end(), found.begin(), found.end());
    }
    return notices;
  }
  std::vector<std::string> NoticesOf(int seconds_after) {
    return NoticesOf(seconds_after, [](int) {});
  }

  HangWatch watch{{.notice = seconds(10)}};
  std::vector<WorkerSample> samples = {Ended(0, {}), Sleeping(1)};
};

TEST_F(EarlyEndTest, ARankThatSleepsAfterAnotherHasEndedIsNoticed) {
  EXPECT_EQ(NoticesOf(9), std::vector<std::string>());
  EXPECT_EQ(NoticesOf(39),
            (std::vector<std::string>{
                "rank 0 ended 10.0 s ago with exit code 0; rank 1 still runs, and nothing visible "
                "shows whether it waits for rank 0; rank 1 is sleeping (clock_nanosleep)",
                "rank 0 ended 20.0 s ago with exit code 0; rank 1 still runs, and nothing visible "
                "shows whether it waits for rank 0; rank 1 is sleeping (clock_nanosleep)"}));
}

TEST_F(EarlyEndTest, RanksThatSpinAreNoticed) {
  samples = {Ended(0, {}), Ended(1, {}), Sleeping(2), Sleeping(3)};
  auto notices = NoticesOf(10, [&](int second) {
    for (int rank : {2, 3}) {
      samples[static_cast<size_t>(rank)].process = ProcessFacts{.state = 'R'};
      samples[static_cast<size_t>(rank)].cpu_time = seconds(second);
    }
  });
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0],
            "ranks 0, 1 ended with exit code 0, the first 10.0 s ago; ranks 2, 3 still run, and "
            "nothing visible shows whether they wait for ranks 0, 1; ranks 2, 3 are spinning or "
            "computing (uses the processor)");
}

TEST_F(EarlyEndTest, ARankThatWritesItsCheckpointIsNotNoticed) {
  EXPECT_EQ(NoticesOf(100, [&](int) { samples[1].process->io_bytes += 1'000'000; }),
            std::vector<std::string>());
  samples[1].is_saving = true;
  EXPECT_EQ(NoticesOf(100), std::vector<std::string>());
}

TEST_F(EarlyEndTest, ARankThatMakesStepsIsNotNoticed) {
  samples[1].groups = {Barrier(2, {})};
  samples[1].groups[0].is_under_way = false;
  EXPECT_EQ(NoticesOf(100, [&](int) { samples[1].groups[0].last.number += 1; }),
            std::vector<std::string>());
}

TEST_F(EarlyEndTest, AWaitThatIsSeenHasNoSecondNotice) {
  samples[1].groups = {Barrier(2, {})};
  auto notices =
      NoticesOf(10, [&](int second) { samples[1].groups[0].since_entered = seconds(second); });
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].find("rank 1 waits in Barrier #7 of world for rank 0"), 0U) << notices[0];
}

TEST_F(EarlyEndTest, FactsAreReadOnlyNearANotice) {
  watch.BeginAttempt(At({}));
  auto needs_facts = [&](int second) {
    samples[0].ended_for = seconds(second);
    return watch.NeedsFacts(samples, At(seconds(second)));
  };
  EXPECT_FALSE(needs_facts(4));
  EXPECT_TRUE(needs_facts(6));
  NoticesOf(11);
  EXPECT_FALSE(needs_facts(12));
  EXPECT_TRUE(needs_facts(16));
}

// Four ranks, of which rank 0 has ended; the others wait in a barrier.
std::vector<WorkerSample> ThreeInBarrier() {
  std::vector<WorkerSample> samples = {Ended(0, seconds(30)), Sleeping(1), Sleeping(2),
                                       Sleeping(3)};
  for (size_t rank : {1U, 2U, 3U}) {
    samples[rank].groups = {Barrier(4, seconds(2))};
  }
  return samples;
}

HangVerdict Unfinished(HangWatch& watch, const std::vector<WorkerSample>& samples) {
  watch.Look(samples, At(seconds(29)));
  watch.Look(samples, At(seconds(30)));
  return watch.JudgeUnfinished(At(seconds(29)));
}

TEST_F(EarlyEndTest, ARankThatHasEndedIsBlamedByThoseThatWaitForIt) {
  HangVerdict verdict = Unfinished(watch, ThreeInBarrier());
  const std::string why =
      "ended with exit code 0 while ranks 1-3 wait for it in Barrier #7 of world";
  EXPECT_EQ(verdict.text, "rank 0 " + why);
  EXPECT_EQ(verdict.causes, (std::map<int, std::string>{{0, why}}));
  EXPECT_FALSE(verdict.needs_stacks);
}

TEST_F(EarlyEndTest, ARankThatRunsIsBlamedIfOthersWaitForIt) {
  auto samples = ThreeInBarrier();
  for (size_t rank : {1U, 2U, 3U}) samples[rank].groups.clear();
  samples[2].awaited = "a message from global rank 3 (tag 0)";
  samples[2].awaited_rank = 3;
  samples[2].awaited_for = seconds(2);
  HangVerdict verdict = Unfinished(watch, samples);
  EXPECT_EQ(verdict.text,
            "rank 2 waits for a message from global rank 3 (tag 0); rank 3 is sleeping "
            "(clock_nanosleep); for 2.0 s");
  ASSERT_EQ(verdict.causes.size(), 1U);
  EXPECT_TRUE(verdict.causes.contains(3));
}

TEST_F(EarlyEndTest, AKeyThatNoRunningRankCanSetBlamesTheEndedOne) {
  samples[1].store_wait = StoreWait{.key = "done", .lasted = seconds(2)};
  EXPECT_EQ(Unfinished(watch, samples).text,
            "rank 0 ended with exit code 0 while rank 1 waits for key done of the store");
  samples.push_back(Sleeping(2));
  EXPECT_TRUE(
      Unfinished(watch, samples)
          .text.ends_with(
              "; ranks 1, 2 still run, and nothing visible shows whether they wait for rank 0"));
}

TEST_F(EarlyEndTest, IfNothingIsSeenBothSidesAreNamed) {
  samples[0].ended_for = seconds(30);
  HangVerdict verdict = Unfinished(watch, samples);
  EXPECT_EQ(verdict.text,
            "rank 0 ended 30.0 s ago with exit code 0; rank 1 still runs, and nothing visible "
            "shows whether it waits for rank 0");
  EXPECT_TRUE(verdict.needs_stacks);
  EXPECT_TRUE(verdict.causes.contains(1));
  samples[1].cpu_time = seconds(1);
  watch.Look(samples, At(seconds(31)));
  EXPECT_FALSE(watch.JudgeUnfinished(At(seconds(30))).needs_stacks) << "it works";
}

RankDigest In(int rank, const std::string& collective) {
  return {rank, {.is_known = true, .collective = collective, .place = "train (a.py:7)"}};
}

TEST(AwaitedEndTest, StacksInCollectivesBlameTheRankThatHasEnded) {
  const HangVerdict nothing{.causes = {{1, "?"}, {2, "?"}}, .text = "?", .needs_stacks = true};
  HangVerdict all = WithAwaitedEnd(nothing, {0}, {In(1, "all_reduce"), In(2, "all_reduce")});
  EXPECT_EQ(all.text, "rank 0 ended with exit code 0 while ranks 1, 2 wait for it in all_reduce");
  EXPECT_EQ(all.causes.size(), 1U);
  HangVerdict mixed = WithAwaitedEnd(nothing, {0, 3}, {In(1, "barrier"), In(2, "all_reduce")});
  EXPECT_EQ(mixed.text, "?") << "they may wait for each other, in groups of their own";
}

TEST(AwaitedEndTest, ARunningRankOutsideOfTheCollectiveIsBlamed) {
  const HangVerdict nothing{.causes = {{1, "?"}, {2, "?"}}, .text = "?", .needs_stacks = true};
  HangVerdict one = WithAwaitedEnd(nothing, {0}, {In(1, "all_reduce"), In(2, "")});
  EXPECT_EQ(one.text, "rank 2 is in train (a.py:7), while all others are in all_reduce");
  EXPECT_EQ(WithAwaitedEnd(nothing, {0}, {In(1, "all_reduce"), {2, {}}}).text, "?") << "unknown";
  HangVerdict busy = nothing;
  busy.needs_stacks = false;
  EXPECT_EQ(WithAwaitedEnd(busy, {0}, {In(1, "all_reduce")}).text, "?");
}

TEST_F(EarlyEndTest, WithoutNoticesThereIsNone) {
  EarlyEndNotices none{Duration::zero()};
  EXPECT_FALSE(none.IsNear(seconds(100), seconds(5)));
  EXPECT_FALSE(none.Take(seconds(100)));
}

}  // namespace
}  // namespace rankrun::agent

#include "agent/report/left_out.h"

#include <gtest/gtest.h>

#include <csignal>

namespace rankrun::agent {
namespace {

WorkerRecord Ended(int rank, ProcessExit exit, int sent_signal = 0) {
  WorkerRecord worker;
  worker.global_rank = rank;
  worker.exit = exit;
  worker.sent_signal = sent_signal;
  return worker;
}
WorkerRecord StoppedWorker(int rank) {
  return Ended(rank, {.signaled = true, .value = SIGTERM}, SIGTERM);
}
WorkerRecord Exited(int rank, int code) { return Ended(rank, {.signaled = false, .value = code}); }

std::vector<LeftOut> LeftOutOf(const std::vector<WorkerRecord>& workers) {
  std::vector<LeftOut> all;
  LeaveOut(workers, all);
  return all;
}

TEST(LeftOutTest, WorkersThatEndedAlikeAreRangesOfRanks) {
  auto all = LeftOutOf({StoppedWorker(4), StoppedWorker(3), StoppedWorker(5), StoppedWorker(9),
                        Exited(1, 3), StoppedWorker(2)});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(RanksOf(all[0]), "rank 1");
  EXPECT_EQ(all[0].exit, (ProcessExit{.signaled = false, .value = 3}));
  EXPECT_EQ(RanksOf(all[1]), "ranks 2-5, 9");
  EXPECT_EQ(all[1].kind, EndKind::kStopped);
  EXPECT_EQ(all[1].count, 5);
}

TEST(LeftOutTest, PartsAreJoined) {
  std::vector<LeftOut> all = LeftOutOf({StoppedWorker(0), StoppedWorker(1)});
  LeaveOut(LeftOutOf({StoppedWorker(4), Exited(5, 1)}), all);
  LeaveOut(LeftOutOf({StoppedWorker(2), StoppedWorker(3)}), all);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(RanksOf(all[0]), "ranks 0-4");
  EXPECT_EQ(RanksOf(all[1]), "rank 5");
}

TEST(LeftOutTest, RangesBeyondALimitAreOnlyCounted) {
  std::vector<WorkerRecord> workers;
  for (int rank = 0; rank < 2'000; rank += 2) workers.push_back(StoppedWorker(rank));
  auto all = LeftOutOf(workers);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].count, 1'000);
  EXPECT_EQ(all[0].bounds.size(), 128u);
  EXPECT_TRUE(RanksOf(all[0]).ends_with(", 124, 126 and 936 others")) << RanksOf(all[0]);
}

TEST(LeftOutTest, WaysToEndBeyondALimitAreCountedTogether) {
  std::vector<WorkerRecord> workers;
  for (int rank = 0; rank < 40; ++rank) workers.push_back(Exited(rank, rank + 1));
  auto all = LeftOutOf(workers);
  ASSERT_EQ(all.size(), 16u);
  EXPECT_FALSE(all[14].is_mixed);
  EXPECT_TRUE(all[15].is_mixed);
  EXPECT_EQ(RanksOf(all[15]), "ranks 15-39");
}

}  // namespace
}  // namespace rankrun::agent

#include "agent/report/named_rank.h"

#include <gtest/gtest.h>

#include <optional>

namespace rankrun::agent {
namespace {

TEST(NamedRankInTest, IsTheRankThatAnErrorOfOursNames) {
  EXPECT_EQ(NamedRankIn("rank 1: AllReduce #2 (16 x float32, sum): lost rank 12: reset"), 12);
  EXPECT_EQ(NamedRankIn("rank 5 on node n3 was killed by SIGKILL, not sent by rankrun"), 5);
  EXPECT_EQ(NamedRankIn("DistError: rank 5 on n3 (pid 77): killed by SIGKILL"), 5);
  EXPECT_EQ(NamedRankIn("rank 5 on n3 (pid 77): exit code 3"), 5);
  EXPECT_EQ(NamedRankIn("Barrier #7 of the world, rank 0 of 5: rank 4 (pid 6600) died"), 4);
  EXPECT_EQ(NamedRankIn("rank 5 ended with exit code 3"), 5);
  EXPECT_EQ(NamedRankIn("rank 5 could not be started: no such file"), 5);
  EXPECT_EQ(NamedRankIn("rank 1: Barrier #2: rank 0 is waiting"), std::nullopt);
  EXPECT_EQ(NamedRankIn("rank 99999999999999 was killed"), std::nullopt);
  EXPECT_EQ(NamedRankIn("rank 5 on node "), std::nullopt);
  EXPECT_EQ(NamedRankIn(""), std::nullopt);
}

TEST(NamedRankInTest, IsARankThatLeftOrDidNotCome) {
  EXPECT_EQ(NamedRankIn("AllReduce #4 of world, rank 0 of 3: rank 2 has left the group"), 2);
  EXPECT_EQ(NamedRankIn("[Rank 0]: Rank 1 failed to pass monitoredBarrier in 3000 ms"), 1);
  EXPECT_EQ(NamedRankIn("[Rank 0]: Ranks 3, 5 failed to pass monitoredBarrier in 3000 ms"), 3);
  EXPECT_EQ(NamedRankIn("lost connection to rank 4"), 4);
  EXPECT_EQ(NamedRankIn("Rank 2 successfully reached monitoredBarrier, but received errors while "
                        "waiting for send/recv from rank 0"),
            std::nullopt);
  EXPECT_EQ(NamedRankIn("bank 3 died"), std::nullopt);
}

TEST(NamedRankInTest, IsTheRankOfTheOddCallBeforeOneThatEndedOfIt) {
  EXPECT_EQ(NamedRankIn("ranks 0, 1, 3 called AllReduce #4 (10 x float32, sum); rank 2 called "
                        "AllReduce #4 (20 x float32, sum); rank 3 ended with exit code 1"),
            2);
}

TEST(NamedRankInTest, IsARankThatDiffers) {
  EXPECT_EQ(NamedRankIn("NewGroup: ranks 0-3, 5 want ranks 0,1,2; rank 4 wants ranks 3,4,5"), 4);
  EXPECT_EQ(NamedRankIn("AllToAll #4 of world, rank 0 of 4: rank 1 sends 40 bytes to rank 2, which "
                        "expects 32"),
            1);
  EXPECT_EQ(NamedRankIn("DDP expects same model across all ranks, but Rank 2 has 4 params, while "
                        "rank 1 has inconsistent 6 params."),
            1);
}

TEST(NamedRankInTest, IsARankThatGivesNoSignOfLife) {
  for (const char* text :
       {"RuntimeError: no heartbeat from rank 2 for 30 s, ending the job", "rank 2 did not respond",
        "no response from rank 2 on node-1 (pid 77)", "Rank 2 is unresponsive, aborting",
        "timed out waiting for rank 2 to save"}) {
    EXPECT_EQ(NamedRankIn(text), 2) << text;
  }
  EXPECT_EQ(NamedRankIn("heartbeat from rank 2 is on time"), std::nullopt);
}

TEST(NamedRankInTest, IsARankForWhichOthersWaitedInVain) {
  EXPECT_EQ(NamedRankIn("AllReduce #4 of world, rank 0 of 3: rank 2 has not called AllReduce #4"),
            2);
  EXPECT_EQ(NamedRankIn("MonitoredBarrier #1, rank 2 of 3: 2 of 3 present after 2.0 s, missing: "
                        "rank 1"),
            1);
  EXPECT_EQ(NamedRankIn("Init: rank 0 of 3: ranks 1, 2 did not join within 2.0 s"), 1);
}

TEST(NamedRankInTest, IsTheRankWhoseCallDiffersFromTheOwnOne) {
  EXPECT_EQ(
      NamedRankIn("Detected mismatch between collectives on ranks. Rank 0 is running "
                  "collective: CollectiveFingerPrint(OpType=ALLREDUCE), but Rank 1 is running "
                  "collective: CollectiveFingerPrint(OpType=BARRIER)."),
      1);
  EXPECT_EQ(NamedRankIn("Rank 0 is running collective: ALLREDUCE"), std::nullopt);
}

TEST(NamedRankInTest, IsTheRankThatRefusedACall) {
  EXPECT_EQ(NamedRankIn("AllReduce #4 (1 x int32, sum), rank 0 of 3: rank 1 refused Broadcast #4 "
                        "(1 x int32, root 7): global rank 7 is no member of the group"),
            1);
}

TEST(NamedRankInTest, IsTheRankThatAnotherReportsAsFailed) {
  EXPECT_EQ(NamedRankIn("RuntimeError: rank 2 has failed in prepare(): FileNotFoundError"), 2);
  EXPECT_EQ(NamedRankIn("MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD"), 2);
}

TEST(NamedRankInTest, IsTheRankForWhichAllRanksRaise) {
  const std::string checkpoint = "CheckpointException: CheckpointException ranks:dict_keys(";
  EXPECT_EQ(NamedRankIn(checkpoint + "[1])\nTraceback (most recent call last): (RANK 1)"), 1);
  EXPECT_EQ(NamedRankIn(checkpoint + "[0, 1])"), std::nullopt);
  EXPECT_EQ(NamedRankIn("UNAVAILABLE: The following tasks are unhealthy (stopped sending "
                        "heartbeats):\n/job:jax_worker/replica:0/task:2"),
            2);
  EXPECT_EQ(NamedRankIn("The following tasks are unhealthy:\n/job:a/replica:0/task:1\n"
                        "/job:a/replica:0/task:2"),
            std::nullopt);
  EXPECT_EQ(NamedRankIn("/job:jax_worker/replica:0/task:2 has connected"), std::nullopt);
}

TEST(NamedRankInTest, IsTheOnlyRankWhoseCallDiffers) {
  EXPECT_EQ(
      NamedRankIn("rank 3 of 4: ranks 0, 1, 3 called AllReduce #4 (10 x float32, sum); rank 2 "
                  "called AllReduce #4 (20 x float32, sum)"),
      2);
  EXPECT_EQ(NamedRankIn("rank 0 called Barrier #1; ranks 1-7 called AllReduce #1"), 0);
  EXPECT_EQ(NamedRankIn("rank 0 called Barrier #1; rank 1 called AllReduce #1"), std::nullopt);
  EXPECT_EQ(NamedRankIn("ranks 0, 1 called Barrier #1; ranks 2, 3 called AllReduce #1"),
            std::nullopt);
  EXPECT_EQ(NamedRankIn("ranks 0, 1 called A; rank 2 called B; rank 3 called C"), std::nullopt);
  EXPECT_EQ(NamedRankIn("ranks 0-, called A; rank called B"), std::nullopt);
}

}  // namespace
}  // namespace rankrun::agent

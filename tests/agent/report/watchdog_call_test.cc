#include "agent/report/watchdog_call.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

const std::string kLate =
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4486, OpType=ALLREDUCE, "
    "NumelIn=25, NumelOut=25, Timeout(ms)=600000) ran for 600023 milliseconds before timing out.";

TEST(WatchdogCallTest, AnOutputWithoutATimeOutHasNone) {
  EXPECT_FALSE(CallInWatchdogText(""));
  EXPECT_FALSE(CallInWatchdogText("Watchdog caught collective operation timeout: WorkNCCL("));
  EXPECT_FALSE(CallInWatchdogText("OpType=ALLREDUCE, SeqNum=7"));
}

TEST(WatchdogCallTest, TheCallIsThatOfTheText) {
  auto call = CallInWatchdogText("[rank2]:[E1126 ProcessGroupNCCL.cpp:632] [Rank 2] " + kLate);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->what, "ALLREDUCE");
  EXPECT_EQ(call->sequence, 4486);
  EXPECT_EQ(call->group, "");
  EXPECT_FALSE(call->is_done);
  EXPECT_FALSE(call->is_message);
}

TEST(WatchdogCallTest, TheLastTextCountsWithItsGroup) {
  auto call = CallInWatchdogText(
      "[Rank 2] " + kLate +
      "\nterminate called\n  what():  [PG ID 0 PG GUID 0(default_pg) Rank 2] Process group "
      "watchdog thread terminated with exception: [Rank 2] " +
      kLate + "\nException raised from here\n");
  ASSERT_TRUE(call);
  EXPECT_EQ(call->group, "0(default_pg)");
}

TEST(WatchdogCallTest, ATextThatIsCutOffHasNone) {
  for (const char* part : {"SeqNum=", "44", ", OpType"}) {
    EXPECT_FALSE(CallInWatchdogText(kLate.substr(0, kLate.find(part)))) << part;
  }
  EXPECT_FALSE(
      CallInWatchdogText("Watchdog caught collective operation timeout: "
                         "WorkNCCL(SeqNum=99999999999999999999, OpType=X)"));
}

}  // namespace
}  // namespace rankrun::agent

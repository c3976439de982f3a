// Decisions of Spawn that need no process.

#include "comm/launch/forked_process.h"

#include <gmock/gmock.h>
#include <signal.h>

namespace rankrun::comm {
namespace {

using testing::HasSubstr;

TEST(ForkedProcessTest, AForkNeedsAProcessWithoutThreadsGroupsAndGpus) {
  EXPECT_TRUE(CheckFork({}));
  EXPECT_THAT(CheckFork({.threads = 3}).error().message, HasSubstr("3 threads"));
  EXPECT_THAT(CheckFork({.threads = 3, .has_world = true}).error().message,
              HasSubstr("process group"));
  EXPECT_THAT(CheckFork({.threads = 3, .uses_gpu = true}).error().message, HasSubstr("uses a GPU"));
}

TEST(ForkedProcessTest, ARecordIsReadAsItWasWritten) {
  EXPECT_TRUE(DecodeRecord(EncodeRecord({.returned = true})).returned);
  SpawnRecord threw = DecodeRecord(EncodeRecord({.exception = "E: text"}));
  EXPECT_FALSE(threw.returned);
  EXPECT_FALSE(threw.lost_peer);
  EXPECT_EQ(threw.exception, "E: text");
  EXPECT_TRUE(DecodeRecord(EncodeRecord({.lost_peer = true, .exception = "E"})).lost_peer);
  EXPECT_FALSE(DecodeRecord("").returned);
}

TEST(ForkedProcessTest, TheExitDecidesAndTheRecordExplains) {
  EXPECT_FALSE(FailureOf(0, 1, {.returned = true}, ProcessExit{}));
  EXPECT_FALSE(FailureOf(0, 1, {}, ProcessExit{})) << "the function called exit(0)";
  EXPECT_FALSE(FailureOf(0, 1, {.returned = true}, std::nullopt));
  EXPECT_EQ(FailureOf(2, 77, {}, ProcessExit{.value = 5})->exit_code, 5);
  auto killed =
      FailureOf(2, 77, {.returned = true}, ProcessExit{.signaled = true, .value = SIGINT});
  EXPECT_EQ(InWords(*killed), "rank 2 (pid 77) was killed by SIGINT");
  EXPECT_EQ(InWords(*FailureOf(2, 77, {.exception = "E: text"}, ProcessExit{.value = 1})),
            "rank 2 (pid 77) threw E: text");
  EXPECT_THAT(InWords(*FailureOf(2, 77, {}, std::nullopt)), HasSubstr("other code"));
}

}  // namespace
}  // namespace rankrun::comm

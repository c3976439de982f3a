// Spawn in C.

#include <gmock/gmock.h>
#include <unistd.h>

#include <string>

#include <rankrun/rankrun.h>

#include "tests/base/support.h"

namespace rankrun::comm {
namespace {

using testing::MatchesRegex;

class CApiSpawnTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef RANKRUN_SANITIZED_THREAD
    GTEST_SKIP() << "ThreadSanitizer has a thread of its own, which a fork would lose";
#endif
  }
};

int CodeOf(int rank, void* data) { return static_cast<const int*>(data)[rank]; }

TEST_F(CApiSpawnTest, AFailureNamesTheRankAndItsExitCode) {
  int codes[] = {0, 0, 9};
  EXPECT_EQ(rankrun_spawn(CodeOf, codes, 2, nullptr), RANKRUN_OK);
  EXPECT_EQ(rankrun_spawn(CodeOf, codes, 3, nullptr), RANKRUN_PROCESS);
  EXPECT_THAT(rankrun_last_error(),
              MatchesRegex("Spawn: rank 2 \\(pid [0-9]+\\) ended with exit code 9"));
}

TEST_F(CApiSpawnTest, ACodeWithoutLowBitsIsAFailure) {
  int codes[] = {0, 256};
  EXPECT_EQ(rankrun_spawn(CodeOf, codes, 2, nullptr), RANKRUN_PROCESS);
  EXPECT_THAT(rankrun_last_error(),
              MatchesRegex("Spawn: rank 1 \\(pid [0-9]+\\) ended with exit code 1"));
}

TEST_F(CApiSpawnTest, AContextIsJoinedLater) {
  rankrun_spawn_context* context = nullptr;
  auto wait = [](int, void*) -> int {
    for (;;) pause();
  };
  ASSERT_EQ(rankrun_spawn(wait, nullptr, 2, &context), RANKRUN_OK);
  int all_ended = -1;
  EXPECT_EQ(rankrun_spawn_join(context, 1, RANKRUN_DEFAULT_TIMEOUT, &all_ended), RANKRUN_OK);
  EXPECT_EQ(all_ended, 0);
  int32_t pid = 0;
  EXPECT_EQ(rankrun_spawn_pid(context, 1, &pid), RANKRUN_OK);
  EXPECT_EQ(rankrun_spawn_pid(context, 2, &pid), RANKRUN_INVALID);
  EXPECT_STREQ(rankrun_last_error(), "rankrun_spawn_pid: rank is 2: want 0 to 1");
  kill(pid, SIGKILL);
  EXPECT_EQ(rankrun_spawn_join(context, RANKRUN_DEFAULT_TIMEOUT, 0, &all_ended), RANKRUN_PROCESS);
  rankrun_spawn_release(context);
  rankrun_spawn_release(nullptr);
  EXPECT_TRUE(test::HasNoChild());
}

TEST_F(CApiSpawnTest, BadArgumentsAreInvalid) {
  rankrun_spawn_context* context = nullptr;
  EXPECT_EQ(rankrun_spawn(nullptr, nullptr, 1, &context), RANKRUN_INVALID);
  EXPECT_STREQ(rankrun_last_error(), "rankrun_spawn: function is NULL");
  EXPECT_EQ(rankrun_spawn(CodeOf, nullptr, 0, &context), RANKRUN_INVALID);
  EXPECT_EQ(rankrun_spawn_join(nullptr, 0, 0, nullptr), RANKRUN_INVALID);
}

}  // namespace
}  // namespace rankrun::comm

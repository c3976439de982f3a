#include "base/check.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace rankrun {
namespace {

TEST(CheckTest, AConditionThatHoldsIsEvaluatedOnce) {
  int evaluated = 0;
  RANKRUN_CHECK(++evaluated == 1, "counted wrong");
  EXPECT_EQ(evaluated, 1);
}

TEST(CheckDeathTest, AnythingElseAbortsWithOneLine) {
  int participants = 3;
  EXPECT_EXIT(RANKRUN_CHECK(participants == 4, "somebody is missing"),
              testing::KilledBySignal(SIGABRT),
              "rankrun: internal error at .*check_test.cc:[0-9]+: somebody is missing "
              "\\(participants == 4\\)");
}

}  // namespace
}  // namespace rankrun

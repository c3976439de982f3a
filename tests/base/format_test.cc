#include "base/format.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace rankrun {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(FormatTest, ShortTimesHaveThreeDigits) {
  EXPECT_EQ(FormatSeconds(Duration::zero()), "0.000 s");
  EXPECT_EQ(FormatSeconds(milliseconds(12)), "0.012 s");
  EXPECT_EQ(FormatSeconds(microseconds(1600)), "0.002 s");
  EXPECT_EQ(FormatSeconds(milliseconds(999)), "0.999 s");
}

TEST(FormatTest, LongTimesHaveOneDigit) {
  EXPECT_EQ(FormatSeconds(seconds(1)), "1.0 s");
  EXPECT_EQ(FormatSeconds(milliseconds(1500)), "1.5 s");
  EXPECT_EQ(FormatSeconds(seconds(75)), "75.0 s");
  EXPECT_EQ(FormatSeconds(std::chrono::hours(1000)), "3600000.0 s");
}

TEST(FormatTest, SignalsHaveTheirNames) {
  EXPECT_EQ(SignalName(SIGKILL), "SIGKILL");
  EXPECT_EQ(SignalName(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(SignalName(SIGTERM), "SIGTERM");
}

TEST(FormatTest, ASignalWithoutANameHasItsNumber) {
  EXPECT_EQ(SignalName(99), "signal 99");
  EXPECT_EQ(SignalName(0), "signal 0");
  EXPECT_EQ(SignalName(-1), "signal -1");
}

}  // namespace
}  // namespace rankrun

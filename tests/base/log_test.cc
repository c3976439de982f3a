#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/base/support.h"

namespace rankrun {
namespace {

using testing::AllOf;
using testing::ExitedWithCode;
using testing::HasSubstr;
using testing::Not;

// The level is read once per process, so each case runs in a process of its
// own.
struct LogDeathTest : testing::Test {
  LogDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

// Ends the process after one message of each level.
[[noreturn]] void LogEachLevel(const char* wanted) {
  if (wanted == nullptr) {
    unsetenv("RANKRUN_LOG");
  } else {
    setenv("RANKRUN_LOG", wanted, 1);
  }
  LogTrace("zero");
  LogDebug("one");
  LogInfo("two");
  LogWarn("three");
  LogError("four");
  _exit(0);
}

TEST_F(LogDeathTest, WarningsAndErrorsAreShownByDefault) {
  const char* expected = "^rankrun: warning: three\nrankrun: error: four\n$";
  EXPECT_EXIT(LogEachLevel(nullptr), ExitedWithCode(0), expected);
  EXPECT_EXIT(LogEachLevel(""), ExitedWithCode(0), expected);
  EXPECT_EXIT(LogEachLevel("warn"), ExitedWithCode(0), expected);
}

TEST_F(LogDeathTest, TraceShowsAll) {
  EXPECT_EXIT(LogEachLevel("trace"), ExitedWithCode(0),
              "^rankrun: trace: zero\nrankrun: debug: one\nrankrun: info: two\n"
              "rankrun: warning: three\nrankrun: error: four\n$");
}

TEST_F(LogDeathTest, DebugHidesTrace) {
  EXPECT_EXIT(LogEachLevel("debug"), ExitedWithCode(0),
              "^rankrun: debug: one\nrankrun: info: two\n"
              "rankrun: warning: three\nrankrun: error: four\n$");
}

TEST_F(LogDeathTest, InfoHidesDebug) {
  EXPECT_EXIT(LogEachLevel("info"), ExitedWithCode(0),
              "^rankrun: info: two\nrankrun: warning: three\nrankrun: error: four\n$");
}

TEST_F(LogDeathTest, ErrorHidesWarnings) {
  EXPECT_EXIT(LogEachLevel("error"), ExitedWithCode(0), "^rankrun: error: four\n$");
}

TEST_F(LogDeathTest, OffHidesAll) { EXPECT_EXIT(LogEachLevel("off"), ExitedWithCode(0), "^$"); }

TEST_F(LogDeathTest, AnUnknownLevelIsReportedAndWarnIsUsed) {
  EXPECT_EXIT(
      LogEachLevel("loud"), ExitedWithCode(0),
      AllOf(HasSubstr("RANKRUN_LOG is \"loud\": want trace, debug, info, warn, error or off"),
            HasSubstr("rankrun: warning: three\nrankrun: error: four\n"),
            Not(HasSubstr("info: two"))));
}

TEST_F(LogDeathTest, TheDefaultLevelHoldsWithoutTheVariable) {
  auto log = [](const char* wanted) {
    setenv("RANKRUN_LOG", wanted, 1);  // an empty string counts as unset
    SetDefaultLogLevel(LogLevel::kError);
    LogEachLevel(wanted);
  };
  EXPECT_EXIT(log(""), ExitedWithCode(0), "^rankrun: error: four\n$");
  EXPECT_EXIT(log("warn"), ExitedWithCode(0), "^rankrun: warning: three\nrankrun: error: four\n$");
}

TEST_F(LogDeathTest, LogEnabledPredictsTheOutput) {
  auto check = [] {
    setenv("RANKRUN_LOG", "warn", 1);
    bool right = !LogEnabled(LogLevel::kDebug) && !LogEnabled(LogLevel::kInfo) &&
                 LogEnabled(LogLevel::kWarn) && LogEnabled(LogLevel::kError);
    _exit(right ? 0 : 1);
  };
  EXPECT_EXIT(check(), ExitedWithCode(0), "");
}

TEST(LogTest, ASinkGetsWholeLinesUntilItIsTakenAway) {
  std::vector<std::string> lines;
  SetLogSink([&](std::string_view line) { lines.emplace_back(line); });
  LogError("first");
  SetLogSink({});
  testing::internal::CaptureStderr();
  LogError("second");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "rankrun: error: second\n");
  EXPECT_EQ(lines, std::vector<std::string>{"rankrun: error: first\n"});
}

TEST(LogTest, AMessageIsNotAFormat) {
  std::string shown;
  SetLogSink([&](std::string_view line) { shown = line; });
  LogError("{} %s {0}");
  SetLogSink({});
  EXPECT_EQ(shown, "rankrun: error: {} %s {0}\n");
}

TEST(LogTest, LinesOfSeveralThreadsDoNotMix) {
  std::vector<std::string> lines;  // guarded by the log
  SetLogSink([&](std::string_view line) { lines.emplace_back(line); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int j = 0; j < 250; ++j) LogError("a line");
    });
  }
  for (std::thread& thread : threads) thread.join();
  SetLogSink({});
  EXPECT_EQ(lines, std::vector<std::string>(1000, "rankrun: error: a line\n"));
}

}  // namespace
}  // namespace rankrun

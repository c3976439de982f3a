#include "comm/launch/launch_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

namespace rankrun::comm {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kStart = R"({"event": "job_started"}
{"event": "attempt_started", "attempt": 0}
)";
constexpr const char* kFailure =
    R"({"event": "worker_ended", "attempt": 0, "rank": 1, "local_rank": 1, "pid": 7, "exit_code": 3, "why": "exit code 3"}
{"event": "worker_ended", "attempt": 0, "rank": 0, "pid": 6, "signal": 15, "sent_by_rankrun": true, "why": "killed"}
)";
constexpr const char* kReport =
    R"({"event": "report", "attempt": 0, "text": "the report", "cause": {"rank": 1, "local_rank": 1, "exit_code": 3, "exception": "ValueError: no", "stderr_file": "/e"}, "consequences": [{"rank": 0, "signal": 15}]}
)";
constexpr const char* kEnd =
    R"({"event": "job_ended", "exit_code": 3, "restarts": 0, "why": "rank 1 failed: exit code 3"}
)";

ProcessExit Exit(int code) { return {.signaled = false, .value = code}; }

LaunchResult Of(const std::string& events, std::optional<ProcessExit> exit) {
  auto result = Conclude(ReadStory(events), exit);
  EXPECT_TRUE(result) << result.error().message;
  return result ? *result : LaunchResult{};
}
std::string RefusalOf(const std::string& events, std::optional<ProcessExit> exit) {
  auto result = Conclude(ReadStory(events), exit);
  return result ? "not refused" : result.error().message;
}

TEST(LaunchResultTest, AFailedJobHasItsCauseAndEachRanksEnd) {
  LaunchResult result = Of(std::string(kStart) + kFailure + kReport + kEnd, Exit(3));
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.signal, std::nullopt);
  EXPECT_EQ(result.restarts, 0);
  EXPECT_EQ(result.why, "rank 1 failed: exit code 3");
  EXPECT_EQ(result.report, "the report");
  EXPECT_EQ(result.cause, 1);
  ASSERT_EQ(result.workers.size(), 2u);
  EXPECT_EQ(result.workers[0].global_rank, 0);
  EXPECT_EQ(result.workers[0].signal, SIGTERM);
  EXPECT_EQ(result.workers[1].exit_code, 3);
  EXPECT_EQ(result.workers[1].exception, "ValueError: no");
  EXPECT_EQ(result.workers[1].stderr_file, "/e");
}

TEST(LaunchResultTest, TheWorkersAreThoseOfTheLastAttempt) {
  std::string events = std::string(kStart) + kFailure +
                       R"({"event": "attempt_started", "attempt": 1})" + "\n" + kReport +
                       R"({"event": "worker_ended", "attempt": 1, "rank": 0, "exit_code": 0})" +
                       "\n" + R"({"event": "job_ended", "exit_code": 0, "restarts": 1})" + "\n";
  LaunchResult result = Of(events, Exit(0));
  EXPECT_TRUE(result.succeeded());
  EXPECT_EQ(result.restarts, 1);
  ASSERT_EQ(result.workers.size(), 1u);
  EXPECT_TRUE(result.workers[0].succeeded());
  EXPECT_EQ(result.report, "the report") << "of the attempt that failed";
}

TEST(LaunchResultTest, AnEndByASignalIsASignal) {
  LaunchResult result = Of(std::string(kStart) + R"({"event": "job_ended", "signal": 15})" + "\n",
                           ProcessExit{.signaled = true, .value = SIGTERM});
  EXPECT_EQ(result.signal, SIGTERM);
  EXPECT_EQ(result.exit_code, 143);
}

TEST(LaunchResultTest, AnEndThatSomebodyElseSawIsKnownFromTheEvents) {
  EXPECT_EQ(Of(std::string(kStart) + kEnd, std::nullopt).exit_code, 3);
  LaunchResult lost = Of(kStart, std::nullopt);
  EXPECT_EQ(lost.exit_code, 205);
  EXPECT_EQ(lost.why, "rankrun itself was ended in the middle of the job");
}

TEST(LaunchResultTest, AKilledRankrunIsNoSuccess) {
  LaunchResult result = Of(kStart, ProcessExit{.signaled = true, .value = SIGKILL});
  EXPECT_EQ(result.exit_code, 137);
  EXPECT_EQ(result.signal, SIGKILL);
  EXPECT_EQ(result.why, "rankrun itself was ended by SIGKILL");
}

TEST(LaunchResultTest, ARefusalIsAnError) {
  EXPECT_EQ(RefusalOf(R"({"event": "refused", "why": "x: no such file", "exit_code": 127})"
                      "\n",
                      Exit(127)),
            "rankrun has refused the job: x: no such file");
  EXPECT_EQ(RefusalOf("", Exit(2)),
            "rankrun has ended with exit code 2 before the job began; what it says is on its "
            "standard error");
  EXPECT_THAT(RefusalOf("", std::nullopt), HasSubstr("in an unknown way"));
  EXPECT_THAT(RefusalOf("", ProcessExit{.signaled = true, .value = 9}), HasSubstr("by SIGKILL"));
}

TEST(LaunchResultTest, OddLinesAreSkipped) {
  for (const char* odd :
       {"{", "", "7", "null", "[]", R"({"event": 7})", R"({"event": "worker_ended", "rank": "x"})",
        R"({"event": "report", "cause": 3, "consequences": 4})",
        R"({"event": "report", "cause": null, "consequences": [7, null, "x"]})",
        R"({"event": "attempt_started", "attempt": []})", R"({"event": "later_kind"})", "\xff"}) {
    LaunchResult result = Of(std::string(kStart) + odd + "\n" + kEnd, Exit(3));
    EXPECT_EQ(result.exit_code, 3) << odd;
  }
  EXPECT_THAT(Of(std::string(kStart) + R"({"event": "worker_ended")", Exit(1)).workers, IsEmpty());
}

}  // namespace
}  // namespace rankrun::comm

#include "agent/metrics/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "agent/job/exit_codes.h"

namespace rankrun::agent {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

TimePoint At(int second) { return TimePoint(seconds(second)); }

WorkerRecord Ended(int rank, ProcessExit exit) {
  WorkerRecord worker;
  worker.global_rank = worker.local_rank = rank;
  worker.exit = exit;
  return worker;
}
WorkerRecord Exited(int rank, int code) { return Ended(rank, {.signaled = false, .value = code}); }
WorkerRecord Killed(int rank, int number) {
  return Ended(rank, {.signaled = true, .value = number});
}

AttemptRecord FailedWith(WorkerRecord cause) {
  AttemptRecord record;
  record.workers = {std::move(cause)};
  return record;
}

TEST(FailureKindTest, EachCauseHasAKind) {
  EXPECT_EQ(FailureKindOf(FailedWith(Exited(0, 3))), FailureKind::kExit);
  EXPECT_EQ(FailureKindOf(FailedWith(Killed(0, SIGKILL))), FailureKind::kSignal);
  EXPECT_EQ(FailureKindOf(FailedWith(WorkerRecord{})), FailureKind::kNotStarted);
  WorkerRecord raised = Exited(0, 1);
  raised.exception = "ValueError: no";
  EXPECT_EQ(FailureKindOf(FailedWith(raised)), FailureKind::kException);
  raised.exception.reset();
  raised.stderr_tail =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nValueError: no\n";
  EXPECT_EQ(FailureKindOf(FailedWith(raised)), FailureKind::kException);
  AttemptRecord hung = FailedWith(Killed(0, SIGKILL));
  hung.exit_code = kExitHang;
  EXPECT_EQ(FailureKindOf(hung), FailureKind::kHang);
}

TEST(FailureKindTest, TheCoordinatorsTextHasAKind) {
  auto kind = [](const char* text) {
    AttemptRecord record = FailedWith(Killed(0, SIGTERM));
    record.own_cause = text;
    return FailureKindOf(record);
  };
  EXPECT_EQ(kind("node n1 is lost: silent for 10 s"), FailureKind::kNodeLost);
  EXPECT_EQ(kind("the agent of node n1 died"), FailureKind::kAgentLost);
  EXPECT_EQ(kind("rank 3 on n1 (pid 7): killed by SIGKILL"), FailureKind::kSignal);
  EXPECT_EQ(kind("rank 3 on n1 (pid 7): exit code 3"), FailureKind::kExit);
  EXPECT_EQ(kind("rank 3 on n1 (pid 0): could not be started: no"), FailureKind::kNotStarted);
  EXPECT_EQ(kind("the job's time is over"), FailureKind::kOther);
}

struct JobMetricsTest : testing::Test {
  explicit JobMetricsTest(TimePoint counted_from = At(0)) : metrics(SomeJob(counted_from)) {}

  std::string Text(int second) const {
    return FormatExposition(
        metrics.Families({.time = At(second),
                          .clock = std::chrono::system_clock::time_point(seconds(1000 + second)),
                          .first_rank = 4,
                          .world_size = 8,
                          .store = store}));
  }
  void Note(events::Payload event, int attempt, int second) {
    metrics.Note(event, attempt, At(second));
  }
  void StartAttempt(int attempt, int second) {
    Note(events::AttemptStarted{29500}, attempt, second);
    Note(events::WorkerStarted{4, 0, 100}, attempt, second);
    Note(events::WorkerStarted{5, 1, 101}, attempt, second);
  }

  static JobMetrics::Job SomeJob(TimePoint counted_from) {
    return {.version = "1.0",
            .run_id = "job \"7\"",
            .node = "n1",
            .workers = 2,
            .max_restarts = 3,
            .began = At(0),
            .counted_from = counted_from};
  }

  JobMetrics metrics;
  std::optional<store::ServerStats> store;
};

TEST_F(JobMetricsTest, AJobIsDescribed) {
  std::string text = Text(2);
  EXPECT_THAT(text,
              HasSubstr("rankrun_info{version=\"1.0\",run_id=\"job \\\"7\\\"\",node=\"n1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_job_start_time_seconds 1000\n"));
  EXPECT_THAT(text, Not(HasSubstr("rankrun_world_size")));  // a spare has no place
  EXPECT_THAT(text, HasSubstr("rankrun_max_restarts 3\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_restarts_total{budget=\"counted\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_failures_total{kind=\"hang\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("rankrun_goodput_ratio")));
  EXPECT_THAT(text, Not(HasSubstr("rankrun_store")));
}

TEST_F(JobMetricsTest, WorkersAreCountedByState) {
  EXPECT_THAT(Text(0), HasSubstr("rankrun_workers{state=\"waiting\"} 0\n"));
  Note(events::AttemptStarted{29500}, 0, 0);
  Note(events::WorkerStarted{4, 0, 100}, 0, 0);
  EXPECT_THAT(Text(1), HasSubstr("rankrun_workers{state=\"waiting\"} 1\n"));
  EXPECT_THAT(Text(1), HasSubstr("rankrun_workers{state=\"running\"} 1\n"));
  Note(events::WorkerEnded{Exited(0, 0), {}}, 0, 2);
  Note(events::WorkerEnded{Exited(1, 3), {}}, 0, 2);
  EXPECT_THAT(Text(2), HasSubstr("rankrun_workers{state=\"succeeded\"} 1\n"));
  EXPECT_THAT(Text(2), HasSubstr("rankrun_workers{state=\"failed\"} 1\n"));
}

TEST_F(JobMetricsTest, FailuresRestartsAndTheirTimeAreCounted) {
  StartAttempt(0, 0);
  Note(events::WorkerEnded{Exited(1, 3), {}}, 0, 5);
  Note(events::WorkerEnded{Killed(0, SIGTERM), {}}, 0, 6);
  Note(events::Restart{.number = 1, .of = 3, .delay = {}, .why = ""}, 0, 6);
  Note(events::Report{FailedWith(Exited(1, 3)), ""}, 0, 6);
  StartAttempt(1, 8);
  Note(events::NodeLost{"n2"}, 1, 9);
  Note(events::Restart{.number = 1, .of = 3, .delay = {}, .is_free = true, .why = ""}, 1, 9);
  StartAttempt(2, 10);
  std::string text = Text(10);
  EXPECT_THAT(text, HasSubstr("rankrun_restarts_total{budget=\"counted\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_restarts_total{budget=\"free\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_failures_total{kind=\"exit\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_nodes_lost_total 1\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_lost_seconds_total{reason=\"downtime\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_attempt 2\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_world_size 8\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_attempt_start_time_seconds 1010\n"));
}

// A restart at once does not wait for the report.
TEST_F(JobMetricsTest, ALateReportDoesNotBringTheLastAttemptBack) {
  StartAttempt(0, 0);
  Note(events::WorkerEnded{Exited(1, 3), {}}, 0, 1);
  StartAttempt(1, 1);
  Note(events::Report{FailedWith(Exited(1, 3)), ""}, 0, 2);
  EXPECT_THAT(Text(3), HasSubstr("rankrun_attempt 1\n"));
  EXPECT_THAT(Text(3), HasSubstr("rankrun_failures_total{kind=\"exit\"} 1\n"));
}

TEST_F(JobMetricsTest, AnAgentsDeathIsAFailureAndARestart) {
  metrics.Note(events::AgentRestarted{.agent_pid = 7,
                                      .incarnation = 1,
                                      .restarts = RestartsUsed{.used = 1, .most = 3},
                                      .why = "killed"},
               std::nullopt, At(0));
  EXPECT_THAT(Text(1), HasSubstr("rankrun_failures_total{kind=\"agent_lost\"} 1\n"));
  EXPECT_THAT(Text(1), HasSubstr("rankrun_restarts_total{budget=\"counted\"} 1\n"));
}

TEST_F(JobMetricsTest, StepsGiveGoodput) {
  StartAttempt(0, 0);
  metrics.Note(WorkerStep{0, 10, At(1)});
  metrics.Note(WorkerStep{1, 9, At(1)});  // behind: counts only for itself
  metrics.Note(WorkerStep{1, 10, At(2)});
  metrics.Note(WorkerStep{1, 11, At(3)});
  metrics.Note(WorkerStep{0, 11, At(3)});
  std::string text = Text(4);
  EXPECT_THAT(text, HasSubstr("rankrun_step{rank=\"4\"} 11\nrankrun_step{rank=\"5\"} 11\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_steps_total 2\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_productive_seconds 2\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_goodput_ratio 0.5\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_lost_seconds_total{reason=\"start\"} 1\n"));
}

TEST_F(JobMetricsTest, StepsAfterARestartWereRepeated) {
  StartAttempt(0, 0);
  for (int step = 0; step <= 4; ++step) metrics.Note(WorkerStep{0, step, At(step)});
  Note(events::WorkerEnded{Exited(0, 1), {}}, 0, 5);
  StartAttempt(1, 6);
  metrics.Note(WorkerStep{1, 3, At(7)});
  std::string text = Text(10);
  EXPECT_THAT(text, HasSubstr("rankrun_repeated_steps_total 2\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_lost_seconds_total{reason=\"repeated_steps\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_lost_seconds_total{reason=\"unfinished_step\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_goodput_ratio 0.2\n"));
}

TEST_F(JobMetricsTest, StepsThatAreMadeAgainInAnAttemptCountOnce) {
  StartAttempt(0, 0);
  for (int step = 0; step <= 10; ++step) {
    metrics.Note(WorkerStep{0, step, At(step)});
    metrics.Note(WorkerStep{1, step, At(step)});
  }
  // Both have loaded the state of step 4; rank 1 is seen later, or at an earlier step.
  metrics.Note(WorkerStep{0, 5, At(11)});
  metrics.Note(WorkerStep{0, 6, At(12)});
  metrics.Note(WorkerStep{1, 5, At(12)});
  std::string text = Text(12);
  EXPECT_THAT(text, HasSubstr("rankrun_repeated_steps_total 6\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_steps_total 13\n"));
  metrics.Note(WorkerStep{1, 7, At(13)});  // ahead
  metrics.Note(WorkerStep{0, 3, At(14)});  // back again
  EXPECT_THAT(Text(14), HasSubstr("rankrun_repeated_steps_total 11\n"));
}

TEST_F(JobMetricsTest, ARankThatHasNotGoneBackYetDoesNotCount) {
  StartAttempt(0, 0);
  metrics.Note(WorkerStep{0, 10, At(1)});
  metrics.Note(WorkerStep{1, 9, At(1)});
  metrics.Note(WorkerStep{0, 5, At(2)});
  metrics.Note(WorkerStep{1, 10, At(2)});
  metrics.Note(WorkerStep{1, 5, At(3)});
  metrics.Note(WorkerStep{0, 6, At(3)});
  EXPECT_THAT(Text(4), HasSubstr("rankrun_repeated_steps_total 6\n"));
  EXPECT_THAT(Text(4), HasSubstr("rankrun_steps_total 3\n"));
}

struct ReplacedAgentTest : JobMetricsTest {
  ReplacedAgentTest() : JobMetricsTest(At(1000)) {}
};

TEST_F(ReplacedAgentTest, CountsItsOwnTime) {
  StartAttempt(1, 1001);
  metrics.Note(WorkerStep{0, 7, At(1002)});
  metrics.Note(WorkerStep{0, 8, At(1004)});
  std::string text = Text(1004);
  EXPECT_THAT(text, HasSubstr("rankrun_job_start_time_seconds 1000\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_goodput_ratio 0.5\n"));
  EXPECT_THAT(text, HasSubstr("rankrun_lost_seconds_total{reason=\"start\"} 2\n"));
}

TEST_F(JobMetricsTest, TheStoreIsShown) {
  store.emplace();
  store->keys = 3;
  store->requests[0] = 7;
  EXPECT_THAT(Text(0), HasSubstr("rankrun_store_keys 3\n"));
  EXPECT_THAT(Text(0), HasSubstr("rankrun_store_requests_total{operation=\"" +
                                 std::string(store::kRequestNames[0]) + "\"} 7\n"));
}

}  // namespace
}  // namespace rankrun::agent

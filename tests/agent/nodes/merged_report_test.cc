#include "agent/nodes/merged_report.h"

#include <gtest/gtest.h>

#include "agent/job/exit_codes.h"
#include "agent/nodes/job_report.h"

namespace rankrun::agent {
namespace {

WorkerRecord Ended(int rank, ProcessExit exit, int sent_signal = 0) {
  WorkerRecord worker;
  worker.global_rank = rank;
  worker.exit = exit;
  worker.sent_signal = sent_signal;
  return worker;
}

// Returns a part in which rank 0 failed; of 600 others, the even ones lost a peer. A report has
// room for some of them only, and for some of the ranges of the rest.
AttemptRecord LargePart() {
  AttemptRecord part;
  part.workers.push_back(Ended(0, {.signaled = false, .value = 7}));
  for (int rank = 1; rank <= 600; ++rank) {
    const bool has_lost = rank % 2 == 0;
    part.workers.push_back(has_lost ? Ended(rank, {.signaled = false, .value = 1})
                                    : Ended(rank, {.signaled = true, .value = 15}, 15));
    if (has_lost) part.workers.back().stderr_tail = "recv: Connection reset by peer\n";
  }
  auto sent = DecodeReport(EncodeReport(part, kMaxPartBytes));
  EXPECT_TRUE(sent);
  return sent ? *sent : part;
}

TEST(ReportOnRoundTest, TheCauseIsAWorkerAlthoughTheFirstFailureIsOnlyCounted) {
  const AttemptRecord part = LargePart();
  ASSERT_NE(part.workers.back().global_rank, 600) << "it is left out";
  const AttemptRecord report =
      ReportOnRound({part}, {.rank = 600, .cause = "rank 600: exit code 1", .exit_code = 1});
  EXPECT_EQ(report.own_cause, "");
  EXPECT_EQ(report.workers[report.cause].global_rank, 0);
  EXPECT_EQ(report.exit_code, 7);
}

TEST(ReportOnRoundTest, AWorkerWithoutAPartStaysTheCause) {
  const RoundOutcome outcome{.rank = 700, .cause = "rank 700: exit code 9", .exit_code = 9};
  const AttemptRecord report = ReportOnRound({LargePart()}, outcome);
  EXPECT_EQ(report.own_cause, "rank 700: exit code 9");
  EXPECT_EQ(report.exit_code, 9);
}

// The first failure that the coordinator knew of need not be the cause.
TEST(ReportOnRoundTest, TheNodesOfTheCausesAreThoseThatTheReportsName) {
  AttemptRecord part;
  part.attempt = 2;
  part.workers.push_back(Ended(0, {.signaled = false, .value = 7}));
  part.workers[0].node = "n2";
  RoundOutcome outcome{.rank = 0, .cause = "rank 0: exit code 7", .cause_node = "n3"};
  EXPECT_EQ(ReportOnRound({part}, outcome).cause_nodes, "") << "it is the only one";
  AddFailure(outcome.earlier_failures, 2, "n2", 1);
  EXPECT_EQ(ReportOnRound({part}, outcome).cause_nodes, "n2 (attempts 1-2)");
  AddFailure(outcome.earlier_failures, 1, "n1", 1);
  EXPECT_EQ(ReportOnRound({part}, outcome).cause_nodes,
            "n2 (attempt 1), n1 (attempt 1), n2 (attempt 2)");
}

TEST(ReportOnRoundTest, ADeadAgentIsOnItsNodeAndALostNodeIsNoCause) {
  AttemptRecord part;
  part.attempt = 3;
  part.workers.push_back(Ended(0, {.signaled = true, .value = 15}, 15));
  part.workers[0].node = "n1";
  RoundOutcome outcome{.cause = "the agent of node n2 died", .cause_node = "n2"};
  AddFailure(outcome.earlier_failures, 2, "n2", 0);
  AddFailure(outcome.earlier_failures, 2, "n2", 1);
  EXPECT_EQ(ReportOnRound({part}, outcome).cause_nodes, "n2 (3 of attempts 0-3)");
  outcome = {.cause = "node n2 is silent", .earlier_failures = outcome.earlier_failures};
  EXPECT_EQ(ReportOnRound({part}, outcome).cause_nodes, "n2 (attempts 0-1)");
}

TEST(ReportOnOwnPartTest, AWorkerThatFailedByItselfStaysTheCause) {
  AttemptRecord part;
  part.workers.push_back(Ended(0, {.signaled = false, .value = 7}));
  const AttemptRecord report = ReportOnOwnPart(part, {9, "the job was closed"}, "");
  EXPECT_EQ(report.own_cause, "");
  EXPECT_EQ(report.next_reason, "the job was closed");
  EXPECT_EQ(report.exit_code, 9);
}

TEST(ReportOnOwnPartTest, OtherwiseTheEndOfTheNodeIsTheCause) {
  AttemptRecord part;
  part.workers.push_back(Ended(0, {.signaled = true, .value = 15}, 15));
  EXPECT_EQ(ReportOnOwnPart(part, {9, "the job was closed"}, "").own_cause, "the job was closed");
}

TEST(ReportOnOwnPartTest, AFailureElsewhereIsTheCause) {
  AttemptRecord part;
  part.workers.push_back(Ended(0, {.signaled = true, .value = 15}, 15));
  const EndNode drained{kExitDrained, ""};
  EXPECT_EQ(ReportOnOwnPart(part, drained, "rank 4 failed").own_cause, "rank 4 failed");
  EXPECT_EQ(ReportOnOwnPart(part, drained, "").own_cause, "this node leaves the job");
  EXPECT_EQ(ReportOnOwnPart(part, {130, ""}, "").own_cause, "the job was ended at this node");
  part.workers.push_back(Ended(1, {.signaled = false, .value = 7}));
  part.cause = 1;
  EXPECT_EQ(ReportOnOwnPart(part, drained, "rank 4 failed").own_cause, "");
}

TEST(ReportOnOwnPartTest, ALostCoordinatorIsNamedBriefly) {
  AttemptRecord part;
  part.workers.push_back(Ended(0, {.signaled = true, .value = 9}, 9));
  const AttemptRecord report =
      ReportOnOwnPart(part, {kExitLostCoordinator, "lost the coordinator: reset; no answer"}, "");
  EXPECT_EQ(report.own_cause, "lost the coordinator: reset; no answer");
  EXPECT_EQ(report.next_reason, "the coordinator is lost");
  EXPECT_EQ(report.exit_code, kExitLostCoordinator);
}

}  // namespace
}  // namespace rankrun::agent

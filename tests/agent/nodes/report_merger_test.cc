#include "agent/nodes/report_merger.h"

#include <gtest/gtest.h>

#include "agent/nodes/job_report.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;

const RoundOutcome kRestart{.cause = "rank 0 failed", .restarts = true, .reason = "at once"};

// A job of at most 3 nodes; the node of connection n has rank n.
struct ReportMergerTest : testing::Test {
  static Report PartOf(int rank, int attempt = 0) {
    AttemptRecord record;
    WorkerRecord& worker = record.workers.emplace_back();
    worker.node = "n" + std::to_string(rank);
    worker.global_rank = rank;
    worker.exit = ProcessExit{.signaled = false, .value = 7};
    return {attempt, EncodeReport(record, kMaxPartBytes)};
  }
  std::vector<ReportMerger::Sending> Part(PeerId peer, int attempt = 0) {
    auto sent = merger_.OnPart(peer, PartOf(static_cast<int>(peer), attempt), outcome_, now_);
    EXPECT_TRUE(sent);
    return sent ? *sent : std::vector<ReportMerger::Sending>{};
  }
  static size_t WorkersOf(const ReportMerger::Sending& sending) {
    auto record = DecodeReport(sending.report.record);
    return record ? record->workers.size() : 0;
  }

  TimePoint now_{std::chrono::hours(1)};
  ReportMerger::Outcome outcome_ = kRestart;
  ReportMerger merger_{3};
};

TEST_F(ReportMergerTest, TheReportWaitsForAllPartsAndTheOutcome) {
  outcome_.reset();
  merger_.Expect(1);
  merger_.Expect(2);
  EXPECT_TRUE(Part(1).empty());
  EXPECT_TRUE(Part(2).empty()) << "not decided";
  auto sent = merger_.Look(kRestart, now_);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_FALSE(sent[0].to) << "to all nodes";
  EXPECT_EQ(WorkersOf(sent[0]), 2u);
  EXPECT_FALSE(merger_.is_report_to_come());
}

TEST_F(ReportMergerTest, TheNodeOfTheCauseComesWithTheReport) {
  auto sent = Part(1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].cause_node, "") << "no worker is the cause";
  outcome_->rank = 2;
  sent = Part(2, 1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].cause_node, "n2");
}

TEST_F(ReportMergerTest, PartsOfLostNodesAreNotWaitedFor) {
  merger_.Expect(1);
  merger_.Expect(2);
  EXPECT_TRUE(Part(1).empty());
  merger_.Forget(2);
  EXPECT_EQ(merger_.Look(outcome_, now_).size(), 1u);
}

TEST_F(ReportMergerTest, LatePartsAreLeftOut) {
  merger_.Expect(1);
  merger_.Expect(2);
  Part(1);
  ASSERT_EQ(merger_.deadline(), now_ + milliseconds(1'000));
  EXPECT_TRUE(merger_.Look(outcome_, now_ + milliseconds(999)).empty());
  EXPECT_EQ(merger_.Look(outcome_, now_ + milliseconds(1'000)).size(), 1u);
  EXPECT_FALSE(merger_.deadline());
}

TEST_F(ReportMergerTest, ANodeThatRepeatsItsPartGetsTheReportAlone) {
  ASSERT_EQ(Part(1).size(), 1u);
  auto sent = merger_.OnPart(11, PartOf(1), outcome_, now_);
  ASSERT_TRUE(sent && sent->size() == 1);
  EXPECT_EQ((*sent)[0].to, PeerId{11});
}

TEST_F(ReportMergerTest, ANodeThatConnectsAgainGetsTheLastReportOnAnAttemptThatItHasSeen) {
  EXPECT_FALSE(merger_.ReportFor(1));
  ASSERT_EQ(Part(1, 1).size(), 1u);
  EXPECT_FALSE(merger_.ReportFor(1)) << "it has seen attempt 0 only";
  ASSERT_TRUE(merger_.ReportFor(2));
  EXPECT_EQ(merger_.ReportFor(2)->attempt, 1);
  EXPECT_TRUE(merger_.ReportFor(3));
}

// For example of a node that was silent for longer than --node-timeout.
TEST_F(ReportMergerTest, APartAfterTheReportIsAnsweredToItsNodeAlone) {
  ASSERT_EQ(Part(1, 1).size(), 1u);
  auto sent = Part(2, 1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].to, PeerId{2});
  EXPECT_EQ(WorkersOf(sent[0]), 1u);
  EXPECT_TRUE(Part(3, 0).empty()) << "of an earlier attempt";
  EXPECT_FALSE(merger_.is_report_to_come());
}

// A node that was lost long ago comes back to a coordinator that has started again.
TEST_F(ReportMergerTest, PartsFromBeforeItsFirstAttemptAreLeftOut) {
  ReportMerger resumed(3, 2);
  for (int attempt = 0; attempt < 4; ++attempt) {
    auto sent = resumed.OnPart(1, PartOf(1, attempt), outcome_, now_);
    ASSERT_TRUE(sent);
    EXPECT_EQ(sent->size(), attempt < 2 ? 0u : 1u) << attempt;
  }
}

TEST_F(ReportMergerTest, APartOfTheNextAttemptEndsTheWait) {
  merger_.Expect(2);
  EXPECT_TRUE(Part(1, 0).empty());
  auto sent = Part(2, 1);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].report.attempt, 0);
  EXPECT_EQ(sent[1].report.attempt, 1);
  EXPECT_TRUE(merger_.OnPart(3, PartOf(3, 0), std::nullopt, now_)) << "a late part";
}

TEST_F(ReportMergerTest, SurplusPartsDoNotCount) {
  outcome_.reset();
  Part(1);
  EXPECT_TRUE(merger_.OnPart(1, PartOf(9), outcome_, now_)) << "a second part of a node";
  EXPECT_TRUE(merger_.OnPart(9, PartOf(1), outcome_, now_)) << "a part that another node sent";
  for (PeerId peer : {2u, 3u, 4u}) Part(peer);
  auto sent = merger_.Look(kRestart, now_);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(WorkersOf(sent[0]), 3u) << "as many as the job has nodes";
}

TEST_F(ReportMergerTest, APartThatCannotBeReadIsAnErrorAndIsNotWaitedFor) {
  merger_.Expect(1);
  EXPECT_FALSE(merger_.OnPart(1, {0, "x"}, outcome_, now_));
  EXPECT_FALSE(merger_.OnPart(1, {0, std::string(kMaxPartBytes + 1, 'x')}, outcome_, now_));
  EXPECT_FALSE(merger_.is_report_to_come());
}

}  // namespace
}  // namespace rankrun::agent

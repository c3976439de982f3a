#include "agent/coordination/cause_history.h"

#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

TEST(CauseHistoryTest, FailuresOnOneNodeAreARowUntilAnotherNodeFails) {
  std::vector<FailureRow> rows;
  AddFailure(rows, 2, "n2", 0);
  AddFailure(rows, 2, "n2", 3);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].failures, 2);
  EXPECT_EQ(FailuresText(rows), "n2 (2 of attempts 0-3)");
  AddFailure(rows, 3, "n3", 4);
  AddFailure(rows, 2, "n2", 5);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows.back(), (FailureRow{2, "n2", 5, 5, 1}));
}

TEST(CauseHistoryTest, TheTextNamesTheNodeOfEachFailure) {
  std::vector<FailureRow> rows;
  EXPECT_EQ(FailuresText(rows), "");
  AddFailure(rows, 2, "n2", 0);
  EXPECT_EQ(FailuresText(rows), "") << "the cause of the attempt names its node";
  AddFailure(rows, 2, "n2", 1);
  EXPECT_EQ(FailuresText(rows), "n2 (attempts 0-1)");
  AddFailure(rows, 3, "n3", 2);
  EXPECT_EQ(FailuresText(rows), "n2 (attempts 0-1), n3 (attempt 2)");
}

// A round that fails before its workers start is no attempt.
TEST(CauseHistoryTest, SeveralFailuresCanBeOfOneAttempt) {
  std::vector<FailureRow> rows;
  AddFailure(rows, 2, "n2", 1);
  AddFailure(rows, 2, "n2", 1);
  EXPECT_EQ(FailuresText(rows), "n2 (attempt 1)");
}

TEST(CauseHistoryTest, TheOldestRowsAreForgotten) {
  std::vector<FailureRow> rows;
  for (int attempt = 0; attempt < 1'000; ++attempt) {
    AddFailure(rows, static_cast<uint64_t>(attempt % 2), "n", attempt);
  }
  EXPECT_LE(rows.size(), 8U);
  EXPECT_EQ(rows.back().last_attempt, 999);
}

TEST(CauseHistoryTest, TheLastReplacementOfANodeCounts) {
  CauseHistory causes;
  EXPECT_EQ(causes.ReplacedAfter(2), 0);
  causes.RecordReplaced(2, 2);
  causes.RecordReplaced(2, 3);
  EXPECT_EQ(causes.ReplacedAfter(2), 3);
  EXPECT_EQ(causes.replaced.size(), 1U);
}

}  // namespace
}  // namespace rankrun::agent

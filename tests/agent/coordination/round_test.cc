#include "agent/coordination/round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> Order(std::vector<Candidate> candidates, int max_nodes = 100) {
  std::vector<uint64_t> nodes;
  for (const NodeAssignment& assignment : AssignNodeRanks(std::move(candidates), max_nodes))
    nodes.push_back(assignment.node);
  return nodes;
}

TEST(RoundTest, NodesAreOrderedByClaimThenIndexThenEarlierRankThenArrival) {
  EXPECT_THAT(Order({{.node = 1, .arrival = 1},
                     {.node = 2, .arrival = 0},
                     {.node = 3, .earlier_rank = 5, .arrival = 9},
                     {.node = 4, .scheduler_index = 7, .arrival = 9},
                     {.node = 5, .claimed_rank = 9, .arrival = 9}}),
              ElementsAre(5, 4, 3, 2, 1));
}

TEST(RoundTest, RanksAreDenseAndCountWorkers) {
  auto assignments = AssignNodeRanks(
      {{.node = 1, .slots = 2, .claimed_rank = 7}, {.node = 2, .slots = 3, .claimed_rank = 4}}, 5);
  ASSERT_EQ(assignments.size(), 2u);
  EXPECT_EQ(assignments[0].node, 2u);
  EXPECT_EQ(assignments[0].first_rank, 0);
  EXPECT_EQ(assignments[1].first_rank, 3);
  EXPECT_EQ(WorldSizeOf(assignments), 5);
  EXPECT_EQ(WorldSizeOf({}), 0);
}

TEST(RoundTest, ClaimsAndEarlierRanksGoBeforeNewcomersIfThereAreTooMany) {
  EXPECT_THAT(Order({{.node = 1, .scheduler_index = 0, .arrival = 0},
                     {.node = 2, .earlier_rank = 1, .arrival = 1},
                     {.node = 3, .claimed_rank = 3, .arrival = 2}},
                    2),
              ElementsAre(3, 2));
}

TEST(RoundTest, OnlyTheFirstOfTwoEqualClaimsStays) {
  std::vector<Candidate> candidates{{.node = 1, .claimed_rank = 2, .arrival = 5},
                                    {.node = 2, .claimed_rank = 2, .arrival = 1},
                                    {.node = 3, .arrival = 2},
                                    {.node = 4, .arrival = 3}};
  DropDoubleClaims(candidates);
  EXPECT_THAT(Order(candidates), ElementsAre(2, 3, 4));
}

TEST(RoundTest, ADigestDistinguishesRounds) {
  std::vector<NodeAssignment> assignments{{.node = 1, .slots = 2}, {.node = 2, .slots = 2}};
  std::string digest = DigestOf(3, assignments);
  EXPECT_EQ(DigestOf(3, assignments), digest);
  EXPECT_NE(DigestOf(4, assignments), digest);
  assignments[1].incarnation = 1;
  EXPECT_NE(DigestOf(3, assignments), digest);
}

}  // namespace
}  // namespace rankrun::agent

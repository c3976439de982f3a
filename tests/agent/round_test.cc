#include "agent/round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rankrun::agent {
namespace {

using testing::ElementsAre;

std::vector<uint64_t> Order(std::vector<Candidate> candidates, int most = 100) {
  std::vector<uint64_t> nodes;
  for (const Seat& seat : SeatNodes(std::move(candidates), most)) nodes.push_back(seat.node);
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
  auto seats = SeatNodes(
      {{.node = 1, .slots = 2, .claimed_rank = 7}, {.node = 2, .slots = 3, .claimed_rank = 4}}, 5);
  ASSERT_EQ(seats.size(), 2u);
  EXPECT_EQ(seats[0].node, 2u);
  EXPECT_EQ(seats[0].first_rank, 0);
  EXPECT_EQ(seats[1].first_rank, 3);
  EXPECT_EQ(WorldSizeOf(seats), 5);
  EXPECT_EQ(WorldSizeOf({}), 0);
}

TEST(RoundTest, WhoWasThereOrHasAClaimStaysWhenThereAreTooMany) {
  EXPECT_THAT(Order({{.node = 1, .scheduler_index = 0, .arrival = 0},
                     {.node = 2, .earlier_rank = 1, .arrival = 1},
                     {.node = 3, .claimed_rank = 3, .arrival = 2}},
                    2),
              ElementsAre(3, 2));
}

TEST(RoundTest, OfTwoWithTheSameClaimOnlyTheEarlierStays) {
  std::vector<Candidate> candidates{{.node = 1, .claimed_rank = 2, .arrival = 5},
                                    {.node = 2, .claimed_rank = 2, .arrival = 1},
                                    {.node = 3, .arrival = 2},
                                    {.node = 4, .arrival = 3}};
  DropDoubleClaims(candidates);
  EXPECT_THAT(Order(candidates), ElementsAre(2, 3, 4));
}

TEST(RoundTest, ADigestTellsRoundsApart) {
  std::vector<Seat> seats{{.node = 1, .slots = 2}, {.node = 2, .slots = 2}};
  std::string digest = DigestOf(3, seats);
  EXPECT_EQ(DigestOf(3, seats), digest);
  EXPECT_NE(DigestOf(4, seats), digest);
  seats[1].incarnation = 1;
  EXPECT_NE(DigestOf(3, seats), digest);
}

}  // namespace
}  // namespace rankrun::agent

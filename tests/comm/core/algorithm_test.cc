#include "comm/core/algorithm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace rankrun::comm {
namespace {

using testing::HasSubstr;

constexpr size_t KiB = 1024;

TEST(AlgorithmTest, AllReduceIsByDoublingThenHalvingThenRing) {
  const AlgorithmTable table;
  for (int ranks : {4, 8, 64}) {
    EXPECT_EQ(ChooseAllReduce(ranks, 1, table), AllReduceAlgorithm::kDoubling);
    EXPECT_EQ(ChooseAllReduce(ranks, 32 * KiB, table), AllReduceAlgorithm::kDoubling);
    EXPECT_EQ(ChooseAllReduce(ranks, 32 * KiB + 1, table), AllReduceAlgorithm::kHalving);
    EXPECT_EQ(ChooseAllReduce(ranks, 256 * KiB, table), AllReduceAlgorithm::kHalving);
    EXPECT_EQ(ChooseAllReduce(ranks, 256 * KiB + 1, table), AllReduceAlgorithm::kRing);
  }
}

TEST(AlgorithmTest, TwoRanksDoubleLargerData) {
  AlgorithmTable table;
  EXPECT_EQ(ChooseAllReduce(2, 128 * KiB, table), AllReduceAlgorithm::kDoubling);
  EXPECT_EQ(ChooseAllReduce(2, 128 * KiB + 4, table), AllReduceAlgorithm::kHalving);
  EXPECT_EQ(ChooseAllReduce(2, 256 * KiB + 1, table), AllReduceAlgorithm::kRing);
  table.all_reduce_doubling_of_two = 0;
  EXPECT_EQ(ChooseAllReduce(2, 4, table), AllReduceAlgorithm::kHalving);
}

TEST(AlgorithmTest, OtherNumbersThanPowersOfTwoNeverHalve) {
  const AlgorithmTable table;
  for (int ranks : {3, 5, 6, 7, 9, 63, 65}) {
    EXPECT_EQ(ChooseAllReduce(ranks, 32 * KiB, table), AllReduceAlgorithm::kDoubling);
    EXPECT_EQ(ChooseAllReduce(ranks, 32 * KiB + 1, table), AllReduceAlgorithm::kRing);
  }
}

TEST(AlgorithmTest, SmallBlocksAreGatheredDirectlyAmongFewRanksAndByBruckAmongMany) {
  const AlgorithmTable table;
  EXPECT_EQ(ChooseAllGather(2, 4 * KiB, table), ExchangeAlgorithm::kDirect);
  EXPECT_EQ(ChooseAllGather(16, 4 * KiB, table), ExchangeAlgorithm::kDirect);
  EXPECT_EQ(ChooseAllGather(17, 4 * KiB, table), ExchangeAlgorithm::kBruck);
  EXPECT_EQ(ChooseAllGather(16, 4 * KiB + 1, table), ExchangeAlgorithm::kPairwise);
  EXPECT_EQ(ChooseAllGather(17, 4 * KiB + 1, table), ExchangeAlgorithm::kPairwise);
}

TEST(AlgorithmTest, SmallBlocksAreExchangedDirectly) {
  AlgorithmTable table;
  EXPECT_EQ(ChooseAllToAll(4 * KiB, table), ExchangeAlgorithm::kDirect);
  EXPECT_EQ(ChooseAllToAll(4 * KiB + 1, table), ExchangeAlgorithm::kPairwise);
  table.all_gather_direct = 1;  // has a limit of its own
  EXPECT_EQ(ChooseAllToAll(4 * KiB, table), ExchangeAlgorithm::kDirect);
}

TEST(AlgorithmTest, LargeBroadcastsAmongMoreThanTwoRanksAreChains) {
  const AlgorithmTable table;
  EXPECT_EQ(ChooseBroadcast(8, 64 * KiB, table), BroadcastAlgorithm::kTree);
  EXPECT_EQ(ChooseBroadcast(8, 64 * KiB + 1, table), BroadcastAlgorithm::kChain);
  EXPECT_EQ(ChooseBroadcast(3, 64 * KiB + 1, table), BroadcastAlgorithm::kChain);
  EXPECT_EQ(ChooseBroadcast(2, 64 * KiB + 1, table), BroadcastAlgorithm::kTree);
}

TEST(AlgorithmTest, AChainHasAtLeastOnePieceAndNotTooMany) {
  AlgorithmTable table;
  table.broadcast_piece = 10;
  EXPECT_EQ(ChainPieces(0, table), 1);
  EXPECT_EQ(ChainPieces(10, table), 1);
  EXPECT_EQ(ChainPieces(11, table), 2);
  EXPECT_EQ(ChainPieces(size_t{10} * kMaxChainPieces, table), kMaxChainPieces);
  EXPECT_EQ(ChainPieces(std::numeric_limits<size_t>::max(), table), kMaxChainPieces);
}

TEST(AlgorithmTest, SmallReductionsAreTrees) {
  const AlgorithmTable table;
  EXPECT_EQ(ChooseReduce(16 * KiB, table), ReduceAlgorithm::kTree);
  EXPECT_EQ(ChooseReduce(16 * KiB + 1, table), ReduceAlgorithm::kRing);
}

TEST(AlgorithmTest, TextSetsTheEntriesThatItNames) {
  auto table = ParseAlgorithms(" all_reduce.doubling=1\tbroadcast.tree=0\n reduce.tree=7 ");
  ASSERT_TRUE(table) << table.error().message;
  AlgorithmTable expected;
  expected.all_reduce_doubling = 1;
  expected.broadcast_tree = 0;
  expected.reduce_tree = 7;
  EXPECT_EQ(*table, expected);
  EXPECT_EQ(*ParseAlgorithms(""), AlgorithmTable());
  EXPECT_EQ(*ParseAlgorithms(" "), AlgorithmTable());
}

TEST(AlgorithmTest, FormattedTextParsesToTheSameTable) {
  const AlgorithmTable all{.all_reduce_doubling = 1,
                           .all_reduce_doubling_of_two = 7,
                           .all_reduce_halving = 2,
                           .all_gather_direct = 3,
                           .all_gather_direct_ranks = 4,
                           .all_gather_bruck = 5,
                           .all_to_all_direct = 6,
                           .broadcast_tree = 9,
                           .broadcast_piece = 10,
                           .reduce_tree = std::numeric_limits<size_t>::max()};
  EXPECT_EQ(FormatAlgorithms(all),
            "all_reduce.doubling=1 all_reduce.doubling_of_two=7 all_reduce.halving=2 "
            "all_gather.direct=3 "
            "all_gather.direct_ranks=4 all_gather.bruck=5 all_to_all.direct=6 broadcast.tree=9 "
            "broadcast.piece=10 "
            "reduce.tree=18446744073709551615");
  EXPECT_EQ(*ParseAlgorithms(FormatAlgorithms(all)), all);
  EXPECT_EQ(*ParseAlgorithms(FormatAlgorithms({})), AlgorithmTable());
}

std::string ParseError(std::string_view text) {
  auto table = ParseAlgorithms(text);
  if (table) return "";
  EXPECT_EQ(table.error().code, ErrorCode::kInvalid);
  return table.error().message;
}

TEST(AlgorithmTest, ErrorsNameTheWrongEntryAndTheRightOnes) {
  EXPECT_THAT(ParseError("reduce.tree=1 all_reduce=5"),
              HasSubstr("there is no algorithm \"all_reduce\"; want one of all_reduce.doubling "));
  EXPECT_EQ(ParseError("ring"),
            "there is no \"=\" in \"ring\"; want KEY=VALUE, as all_reduce.doubling=16384");
  EXPECT_EQ(ParseError("reduce.tree=16K"), "reduce.tree is \"16K\"; want a number of bytes");
  EXPECT_EQ(ParseError("reduce.tree="), "reduce.tree is \"\"; want a number of bytes");
  EXPECT_EQ(ParseError("reduce.tree=-1"), "reduce.tree is \"-1\"; want a number of bytes");
  EXPECT_EQ(ParseError("reduce.tree=18446744073709551616"),
            "reduce.tree is \"18446744073709551616\"; want a number of bytes");
  EXPECT_EQ(ParseError("all_gather.direct_ranks=few"),
            "all_gather.direct_ranks is \"few\"; want a number of ranks");
  EXPECT_EQ(ParseError("broadcast.piece=0"),
            "broadcast.piece is \"0\"; want a number of bytes, at least 1");
  EXPECT_EQ(ParseError("reduce.tree=1 reduce.tree=1"), "reduce.tree is there twice; want it once");
  EXPECT_THAT(ParseError("\x1b[2J=1"), HasSubstr("no algorithm \"\\x1b[2J\""));
}

}  // namespace
}  // namespace rankrun::comm

#include "comm/operation.h"

#include <gtest/gtest.h>

#include <set>

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

TEST(OperationTest, TextSaysWhatTheRanksMustAgreeOn) {
  EXPECT_EQ(Describe({.kind = Kind::kAllReduce,
                      .dtype = DType::kFloat32,
                      .op = ReduceOp::kMax,
                      .count = 16,
                      .number = 12}),
            "AllReduce #12 (16 x float32, max)");
  EXPECT_EQ(
      Describe(
          {.kind = Kind::kBroadcast, .dtype = DType::kFloat64, .root = 2, .count = 3, .number = 1}),
      "Broadcast #1 (3 x float64 from rank 2)");
  EXPECT_EQ(Describe({.kind = Kind::kBarrier, .number = 7}), "Barrier #7");
}

TEST(OperationTest, OperationsThatDifferInAnythingHaveDifferentTags) {
  const Operation base{
      .kind = Kind::kAllReduce, .dtype = DType::kFloat32, .count = 16, .number = 12};
  std::vector<Operation> all(7, base);
  all[1].kind = Kind::kBroadcast;
  all[2].count = 17;
  all[3].dtype = DType::kFloat64;
  all[4].op = ReduceOp::kMin;
  all[5].root = 1;
  all[6].layout = 1;
  std::set<uint32_t> tags;
  for (const Operation& operation : all) tags.insert(Tag(operation));
  EXPECT_EQ(tags.size(), all.size());
}

TEST(OperationTest, NeighboursInTheSequenceHaveDifferentTags) {
  std::set<uint32_t> tags;
  for (uint64_t number = 65'000; number < 66'000; ++number) {
    tags.insert(Tag({.kind = Kind::kBarrier, .number = number}));
  }
  EXPECT_EQ(tags.size(), 1000U);
}

TEST(OperationTest, WhatMayBeUnevenFitsTogetherWithAnyCount) {
  for (const Kind kind : {Kind::kAllGather, Kind::kGather, Kind::kScatter, Kind::kAllToAll}) {
    EXPECT_EQ(Fingerprint({.kind = kind, .count = 1}), Fingerprint({.kind = kind, .count = 2}));
  }
  for (const Kind kind :
       {Kind::kAllReduce, Kind::kReduce, Kind::kBroadcast, Kind::kReduceScatter}) {
    EXPECT_NE(Fingerprint({.kind = kind, .count = 1}), Fingerprint({.kind = kind, .count = 2}));
  }
}

}  // namespace
}  // namespace rankrun::comm

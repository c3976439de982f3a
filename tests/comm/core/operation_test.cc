#include "comm/core/operation.h"

#include <gtest/gtest.h>

#include <set>

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

TEST(OperationTest, TextContainsAllThatRanksMustAgreeOn) {
  EXPECT_EQ(Describe({.kind = Kind::kAllReduce,
                      .dtype = DType::kFloat32,
                      .op = ReduceOp::kMax,
                      .count = 16,
                      .number = 12}),
            "AllReduce #12 (16 x float32, max)");
  EXPECT_EQ(Describe({.kind = Kind::kAllGather, .device = DeviceType::kCuda, .count = 16}),
            "AllGather (16 x uint8 on cuda)");
  EXPECT_EQ(
      Describe(
          {.kind = Kind::kBroadcast, .dtype = DType::kFloat64, .root = 2, .count = 3, .number = 1}),
      "Broadcast #1 (3 x float64 from rank 2)");
  EXPECT_EQ(Describe({.kind = Kind::kBarrier, .number = 7}), "Barrier #7");
}

TEST(OperationTest, TextOfAMessageHasPeerAndTag) {
  Operation recv{.kind = Kind::kRecv, .dtype = DType::kFloat32, .root = 2, .count = 8, .tag = 4};
  EXPECT_EQ(Describe(recv), "Recv (8 x float32 from rank 2, tag 4)");
  EXPECT_EQ(Describe({.kind = Kind::kRecv, .dtype = DType::kFloat32, .count = 8}),
            "Recv (8 x float32, tag 0)");
}

TEST(OperationTest, TextOfObjectsIsOfObjects) {
  Operation send{
      .kind = Kind::kSend, .dtype = DType::kUInt64, .root = 2, .count = 3, .tag = kObjectTags + 4};
  EXPECT_EQ(Describe(send), "SendObjects (objects to rank 2, tag 4)");
  send.dtype = DType::kUInt8;
  EXPECT_EQ(Describe(send), "SendObjects (3 bytes of objects to rank 2, tag 4)");
}

// The upper 56 bits are used for Gloo's slots, so they must differ, too.
uint64_t Upper(const Operation& operation) { return Fingerprint(operation) >> 8; }

TEST(OperationTest, OperationsThatDifferInAnythingHaveDifferentFingerprints) {
  Operation base{.kind = Kind::kAllReduce, .dtype = DType::kFloat32, .count = 16, .number = 12};
  std::vector<Operation> all(10, base);
  all[1].kind = Kind::kBroadcast;
  all[2].count = 17;
  all[3].dtype = DType::kFloat64;
  all[4].op = ReduceOp::kMin;
  all[5].root = 1;
  all[6].layout = 1;
  all[7].device = DeviceType::kCuda;
  all[8].by_backend = true;
  all[9].part_of = ProgramCall::kJoin;
  std::set<uint64_t> fingerprints;
  for (const Operation& operation : all) fingerprints.insert(Upper(operation));
  EXPECT_EQ(fingerprints.size(), all.size());
}

TEST(OperationTest, NeighboursInTheSequenceHaveDifferentFingerprints) {
  std::set<uint64_t> fingerprints;
  for (uint64_t number = 65'000; number < 66'000; ++number) {
    fingerprints.insert(Upper({.kind = Kind::kBarrier, .number = number}));
  }
  EXPECT_EQ(fingerprints.size(), 1000U);
}

TEST(OperationTest, UnevenOperationsMatchWithAnyCount) {
  for (Kind kind : {Kind::kAllGather, Kind::kGather, Kind::kScatter, Kind::kAllToAll}) {
    EXPECT_EQ(Fingerprint({.kind = kind, .count = 1}), Fingerprint({.kind = kind, .count = 2}));
  }
  for (const Kind kind :
       {Kind::kAllReduce, Kind::kReduce, Kind::kBroadcast, Kind::kReduceScatter}) {
    EXPECT_NE(Fingerprint({.kind = kind, .count = 1}), Fingerprint({.kind = kind, .count = 2}));
  }
}

TEST(OperationTest, AMismatchNamesBothSides) {
  EXPECT_EQ(DescribeMismatch(kObjectTags + 5, {"rank 0", DType::kInt32, 16},
                             {"rank 1", DType::kFloat64, 16}),
            "rank 0 sends 4 x int32 with tag 5 to rank 1, which expects 2 x float64");
}

TEST(OperationTest, AMismatchWithAnUnknownTypeIsDescribed) {
  const std::string text =
      DescribeMismatch(5, {"rank 0", static_cast<DType>(200), 16}, {"rank 1", DType::kInt32, 16});
  EXPECT_TRUE(text.starts_with("rank 0 sends 16 x ")) << text;
  EXPECT_TRUE(text.ends_with(" with tag 5 to rank 1, which expects 4 x int32")) << text;
}

}  // namespace
}  // namespace rankrun::comm

#include "comm/shm/backend.h"

#include <gtest/gtest.h>

#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

#include "tests/comm/backend_calls.h"
#include "tests/comm/shm/ranks.h"

namespace rankrun::comm::shm {
namespace {

using Kind = Operation::Kind;
using Int32s = std::vector<int32_t>;

// Small numbers, so that sums are exact in every type.
int32_t ValueOf(int from, int to, size_t i) {
  return from * 3 + to * 5 + static_cast<int32_t>(i % 97) + 1;
}

Int32s Values(int from, int to, size_t count) {
  Int32s values(count);
  for (size_t i = 0; i < count; ++i) values[i] = ValueOf(from, to, i);
  return values;
}

Int32s SumOf(int ranks, int to, size_t count) {
  Int32s sum(count);
  for (int r = 0; r < ranks; ++r) {
    for (size_t i = 0; i < count; ++i) sum[i] += ValueOf(r, to, i);
  }
  return sum;
}

std::byte* BytesOf(Int32s& values) { return reinterpret_cast<std::byte*>(values.data()); }
Block Out(Int32s& values) { return {BytesOf(values), values.size() * sizeof(int32_t)}; }
ConstBlock In(Int32s& values) { return {BytesOf(values), values.size() * sizeof(int32_t)}; }

constexpr Reduction kSum{.dtype = DType::kInt32, .op = ReduceOp::kSum};

void Reductions(ShmRank& me, size_t count) {
  int n = me.ranks(), root = static_cast<int>(count % static_cast<size_t>(n));
  Int32s data = Values(me.rank(), 0, count);
  auto done = AllReduce(me.backend(), BytesOf(data), count, kSum,
                        me.Next(Kind::kAllReduce, DType::kInt32, count));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(data, SumOf(n, 0, count));

  Int32s mine = Values(me.rank(), 0, count);
  data = mine;  // the result replaces the root's input
  Int32s unused(count);
  done = Reduce(me.backend(), BytesOf(me.rank() == root ? data : unused), BytesOf(data), count,
                kSum, me.Next(Kind::kReduce, DType::kInt32, count, root));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(data, me.rank() == root ? SumOf(n, 0, count) : mine);
  EXPECT_EQ(unused, Int32s(count));
}

void ReduceScatters(ShmRank& me, size_t count) {
  std::vector<Int32s> inputs;
  for (int r = 0; r < me.ranks(); ++r) inputs.push_back(Values(me.rank(), r, count + size_t(r)));
  std::vector<ConstBlock> blocks;
  for (Int32s& input : inputs) blocks.push_back(In(input));
  Int32s output(count + static_cast<size_t>(me.rank()));
  auto done = ReduceScatter(me.backend(), Out(output), blocks, kSum,
                            me.Next(Kind::kReduceScatter, DType::kInt32, count));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(output, SumOf(me.ranks(), me.rank(), output.size()));
}

void Broadcasts(ShmRank& me, size_t count) {
  int root = me.ranks() - 1;
  Int32s data = me.rank() == root ? Values(root, 0, count) : Int32s(count);
  auto done =
      Broadcast(me.backend(), Out(data), me.Next(Kind::kBroadcast, DType::kInt32, count, root));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(data, Values(root, 0, count));
}

// All blocks have different sizes; some are empty.
void GathersAndScatters(ShmRank& me, size_t count, bool all) {
  int root = 0;
  bool at_root = all || me.rank() == root;
  auto bytes_of = [&](int r) { return count * static_cast<size_t>((r + 1) % 3); };
  Int32s mine = Values(me.rank(), 0, bytes_of(me.rank()));
  std::vector<Int32s> outputs;
  for (int r = 0; at_root && r < me.ranks(); ++r) outputs.emplace_back(bytes_of(r));
  std::vector<Block> blocks;
  for (Int32s& output : outputs) blocks.push_back(Out(output));
  Kind kind = all ? Kind::kAllGather : Kind::kGather;
  Call call = me.Next(kind, DType::kInt32, mine.size(), all ? Operation::kNoRoot : root);
  auto done = all ? AllGather(me.backend(), blocks, In(mine), call)
                  : Gather(me.backend(), blocks, In(mine), call);
  ASSERT_TRUE(done) << done.error().message;
  for (int r = 0; at_root && r < me.ranks(); ++r) {
    EXPECT_EQ(outputs[static_cast<size_t>(r)], Values(r, 0, bytes_of(r)));
  }
  if (all) return;
  std::vector<ConstBlock> inputs;
  for (Int32s& output : outputs) inputs.push_back(In(output));
  Int32s back(mine.size());
  done = Scatter(me.backend(), Out(back), inputs,
                 me.Next(Kind::kScatter, DType::kInt32, mine.size(), root));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(back, mine);
}

void AllToAlls(ShmRank& me, size_t count) {
  auto count_of = [&](int from, int to) {
    return count * static_cast<size_t>((from + 2 * to) % 4);
  };
  std::vector<Int32s> inputs, outputs;
  for (int r = 0; r < me.ranks(); ++r) {
    inputs.push_back(Values(me.rank(), r, count_of(me.rank(), r)));
    outputs.emplace_back(count_of(r, me.rank()));
  }
  std::vector<ConstBlock> from;
  std::vector<Block> to;
  for (Int32s& input : inputs) from.push_back(In(input));
  for (Int32s& output : outputs) to.push_back(Out(output));
  auto done = AllToAll(me.backend(), to, from, me.Next(Kind::kAllToAll, DType::kInt32, count));
  ASSERT_TRUE(done) << done.error().message;
  for (int r = 0; r < me.ranks(); ++r) {
    EXPECT_EQ(outputs[static_cast<size_t>(r)], Values(r, me.rank(), count_of(r, me.rank())));
  }
}

void AllCollectives(ShmRank& me, size_t count) {
  SCOPED_TRACE("rank " + std::to_string(me.rank()) + ", count " + std::to_string(count));
  Reductions(me, count);
  ReduceScatters(me, count);
  Broadcasts(me, count);
  GathersAndScatters(me, count, false);
  GathersAndScatters(me, count, true);
  AllToAlls(me, count);
  EXPECT_TRUE(me.Barrier());
}

class ShmBackendTest : public testing::TestWithParam<int> {};

TEST_P(ShmBackendTest, MovesAndReducesCorrectly) {
  auto p = static_cast<size_t>(GetParam());
  RunShmRanks(GetParam(), [&](ShmRank& me) {
    for (const size_t count :
         {size_t{0}, size_t{1}, p - 1, p, p + 1, size_t{12}, size_t{13}, size_t{28}, size_t{29},
          size_t{1'023}, size_t{1'024}, size_t{5'003}}) {
      AllCollectives(me, count);
    }
  });
}

TEST_P(ShmBackendTest, MovesMoreThanItsBuffersHold) {
  RunShmRanks(GetParam(), [&](ShmRank& me) { AllCollectives(me, 200'003); });
}

// Data in lines, with the call and in rounds, in turn. One rank refuses every seventh call.
TEST_P(ShmBackendTest, EachSizeFollowsEachOtherAndARefusal) {
  RunShmRanks(GetParam(), [&](ShmRank& me) {
    for (int i = 0; i < 300; ++i) {
      const size_t counts[] = {28, 1'023, 29, 1'024, 200, 5'003};
      size_t count = counts[static_cast<size_t>(i * i + i / 5) % std::size(counts)];
      if ((i + me.rank()) % 3 == 0) std::this_thread::yield();
      if (i % 7 == 6) {
        Call call = me.Next(Kind::kAllReduce, DType::kInt32, count);
        Int32s data = Values(me.rank(), 0, count);
        bool is_refused = me.rank() == i % me.ranks()
                              ? me.backend().Refuse(call, "no memory")
                              : !AllReduce(me.backend(), BytesOf(data), count, kSum, call);
        ASSERT_TRUE(is_refused) << i;
      } else if (i % 2 == 0) {
        Reductions(me, count);
      } else {
        Broadcasts(me, count);
      }
      if (HasFatalFailure()) return;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ShmBackendTest, testing::Range(1, 10));

template <typename T>
void CheckReduction(ShmRank& me, DType dtype, ReduceOp::Kind op, T expected) {
  for (size_t count : {size_t{3}, size_t{1'000}, size_t{300'000}}) {
    std::vector<T> data(count, static_cast<T>(me.rank() + 2));
    Reduction reduction{.dtype = dtype, .op = op};
    Operation operation{.kind = Kind::kAllReduce};
    operation.dtype = dtype;
    operation.op = op;
    operation.count = count;
    auto done = AllReduce(me.backend(), reinterpret_cast<std::byte*>(data.data()), count, reduction,
                          me.Next(operation));
    ASSERT_TRUE(done) << done.error().message;
    EXPECT_EQ(data, std::vector<T>(count, expected)) << static_cast<int>(op);
  }
}

TEST(ShmReductionTest, KnowsTypesAndOperations) {
  RunShmRanks(3, [](ShmRank& me) {  // 2, 3, 4
    CheckReduction<float>(me, DType::kFloat32, ReduceOp::kSum, 9);
    CheckReduction<double>(me, DType::kFloat64, ReduceOp::kProduct, 24);
    CheckReduction<int8_t>(me, DType::kInt8, ReduceOp::kMax, 4);
    CheckReduction<uint16_t>(me, DType::kUInt16, ReduceOp::kMin, 2);
    CheckReduction<int64_t>(me, DType::kInt64, ReduceOp::kBitOr, 7);
    CheckReduction<uint32_t>(me, DType::kUInt32, ReduceOp::kBitXor, 5);
  });
}

TEST(ShmReductionTest, GivesAllRanksTheSameBits) {
  std::vector<std::vector<float>> results(5);
  RunShmRanks(5, [&](ShmRank& me) {
    std::vector<float> data(100'003);
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = 1.0f / static_cast<float>(1 + me.rank() + static_cast<int>(i % 1000));
    }
    EXPECT_TRUE(me.Sum(data));
    results[static_cast<size_t>(me.rank())] = data;
  });
  for (const auto& result : results) {
    EXPECT_EQ(std::memcmp(result.data(), results[0].data(), result.size() * sizeof(float)), 0);
  }
}

}  // namespace
}  // namespace rankrun::comm::shm

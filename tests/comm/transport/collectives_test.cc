// The collectives of backends against plain loops.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "tests/comm/backend_calls.h"
#include "tests/comm/transport/group.h"

namespace rankrun::comm::transport {
namespace {

using Kind = Operation::Kind;

// Small whole numbers: sums and products are exact in any order and dtype.
template <typename T>
T ValueOf(int rank, size_t i) {
  return static_cast<T>((static_cast<size_t>(rank) * 3 + i * 5) % 4 + 1);
}

template <typename T>
std::vector<T> InputOf(int rank, size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = ValueOf<T>(rank, i);
  return values;
}

template <typename T>
T Combine(ReduceOp::Kind op, T a, T b) {
  switch (op) {
    case ReduceOp::kProduct:
      return static_cast<T>(a * b);
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

template <typename T>
std::vector<T> Reduced(ReduceOp::Kind op, int ranks, size_t count) {
  auto values = InputOf<T>(0, count);
  for (int r = 1; r < ranks; ++r) {
    for (size_t i = 0; i < count; ++i) values[i] = Combine(op, values[i], ValueOf<T>(r, i));
  }
  return values;
}

void ExpectOk(const Result<void>& result, const Operation& operation) {
  EXPECT_TRUE(result) << Describe(operation) << ": " << (result ? "" : result.error().message);
}

struct TransportCollectivesTest : testing::TestWithParam<std::tuple<const char*, int>> {
  int ranks() const { return std::get<int>(GetParam()); }
  BackendGroup Group() const { return {std::get<const char*>(GetParam()), ranks()}; }

  std::vector<size_t> Counts() const {
    auto p = static_cast<size_t>(ranks());
    return {0, 1, p - 1, p, p + 1, 1000};
  }

  // Returns the next operation of `rank`.
  Operation Next(int rank, Operation operation) {
    operation.number = ++numbers[static_cast<size_t>(rank)];
    return operation;
  }

  template <typename T>
  void CheckAllReduce(Backend& backend, int rank, ReduceOp::Kind op, size_t count) {
    DType dtype = DTypeOf<T>::kValue;
    auto values = InputOf<T>(rank, count);
    TestCall call(Next(rank, {.kind = Kind::kAllReduce, .dtype = dtype, .op = op, .count = count}));
    ExpectOk(AllReduce(backend, Bytes(values), count, {dtype, op}, call.call), call.operation);
    EXPECT_EQ(values, Reduced<T>(op, ranks(), count)) << Describe(call.operation);
  }

  template <typename T>
  void CheckReduce(Backend& backend, int rank, int root, ReduceOp::Kind op, size_t count) {
    DType dtype = DTypeOf<T>::kValue;
    auto input = InputOf<T>(rank, count);
    std::vector<T> output(count, T{77});
    TestCall call(Next(
        rank, {.kind = Kind::kReduce, .dtype = dtype, .op = op, .root = root, .count = count}));
    ExpectOk(
        Reduce(backend, Bytes(output), ConstBlockOf(input).data, count, {dtype, op}, call.call),
        call.operation);
    EXPECT_EQ(input, InputOf<T>(rank, count));
    EXPECT_EQ(output, rank == root ? Reduced<T>(op, ranks(), count) : std::vector<T>(count, T{77}));
  }

  template <typename T>
  void CheckReduceScatter(Backend& backend, int rank, ReduceOp::Kind op, size_t count) {
    DType dtype = DTypeOf<T>::kValue;
    // Rank i's part has `count` + i elements.
    std::vector<std::vector<T>> parts;
    std::vector<ConstBlock> inputs;
    for (int i = 0; i < ranks(); ++i) {
      parts.push_back(InputOf<T>(rank, count + static_cast<size_t>(i)));
    }
    for (const auto& part : parts) inputs.push_back(ConstBlockOf(part));
    std::vector<T> output(count + static_cast<size_t>(rank));
    TestCall call(
        Next(rank, {.kind = Kind::kReduceScatter, .dtype = dtype, .op = op, .count = count}));
    ExpectOk(ReduceScatter(backend, BlockOf(output), inputs, {dtype, op}, call.call),
             call.operation);
    EXPECT_EQ(output, Reduced<T>(op, ranks(), output.size())) << Describe(call.operation);
    for (int i = 0; i < ranks(); ++i) {
      EXPECT_EQ(parts[static_cast<size_t>(i)], InputOf<T>(rank, count + static_cast<size_t>(i)));
    }
  }

  // Number of elements that rank `from` sends to rank `to`; all numbers differ.
  size_t Uneven(size_t count, int from, int to) const {
    return count + static_cast<size_t>(2 * from + to) % 5;
  }

  // Returns one block per rank, with the sizes that `size` returns.
  std::vector<std::vector<int>> Room(const std::function<size_t(int)>& size) const {
    std::vector<std::vector<int>> room;
    for (int r = 0; r < ranks(); ++r) room.emplace_back(size(r));
    return room;
  }
  static std::vector<Block> BlocksOf(std::vector<std::vector<int>>& room) {
    std::vector<Block> blocks;
    for (auto& values : room) blocks.push_back(BlockOf(values));
    return blocks;
  }
  static std::vector<ConstBlock> ConstBlocksOf(const std::vector<std::vector<int>>& room) {
    std::vector<ConstBlock> blocks;
    for (const auto& values : room) blocks.push_back(ConstBlockOf(values));
    return blocks;
  }

  void CheckGathers(Backend& backend, int rank, size_t count) {
    for (int root = -1; root < ranks(); ++root) {
      auto input = InputOf<int>(rank, Uneven(count, rank, 0));
      auto room = Room([&](int r) { return Uneven(count, r, 0); });
      TestCall call(Next(rank, {.kind = root < 0 ? Kind::kAllGather : Kind::kGather,
                                .dtype = DType::kInt32,
                                .root = root,
                                .count = input.size()}));
      auto outputs = BlocksOf(room);
      if (root >= 0 && root != rank) outputs.clear();
      ExpectOk(root < 0 ? AllGather(backend, outputs, ConstBlockOf(input), call.call)
                        : Gather(backend, outputs, ConstBlockOf(input), call.call),
               call.operation);
      for (int r = 0; !outputs.empty() && r < ranks(); ++r) {
        EXPECT_EQ(room[static_cast<size_t>(r)], InputOf<int>(r, Uneven(count, r, 0)));
      }
    }
  }

  void CheckScatters(Backend& backend, int rank, size_t count) {
    for (int root = 0; root < ranks(); ++root) {
      auto room = Room([&](int r) { return Uneven(count, root, r); });
      for (auto& values : room) values = InputOf<int>(root, values.size());
      auto inputs = ConstBlocksOf(room);
      if (root != rank) inputs.clear();
      std::vector<int> output(Uneven(count, root, rank));
      TestCall call(Next(rank, {.kind = Kind::kScatter, .dtype = DType::kInt32, .root = root}));
      ExpectOk(Scatter(backend, BlockOf(output), inputs, call.call), call.operation);
      EXPECT_EQ(output, InputOf<int>(root, output.size()));
    }
  }

  void CheckAllToAll(Backend& backend, int rank, size_t count) {
    auto sent = Room([&](int r) { return Uneven(count, rank, r); });
    for (auto& values : sent) values = InputOf<int>(rank, values.size());
    auto room = Room([&](int r) { return Uneven(count, r, rank); });
    TestCall call(Next(rank, {.kind = Kind::kAllToAll, .dtype = DType::kInt32}));
    ExpectOk(AllToAll(backend, BlocksOf(room), ConstBlocksOf(sent), call.call), call.operation);
    for (int r = 0; r < ranks(); ++r) {
      EXPECT_EQ(room[static_cast<size_t>(r)], InputOf<int>(r, Uneven(count, r, rank)));
    }
  }

  std::vector<uint64_t> numbers = std::vector<uint64_t>(static_cast<size_t>(ranks()), 0);
};

TEST_P(TransportCollectivesTest, AllReduceIsTheLoopOverAllRanks) {
  Group().Run([&](Backend& backend, int rank) {
    for (size_t count : Counts()) {
      for (auto op : {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax}) {
        CheckAllReduce<float>(backend, rank, op, count);
        CheckAllReduce<double>(backend, rank, op, count);
        CheckAllReduce<int8_t>(backend, rank, op, count);
        CheckAllReduce<uint16_t>(backend, rank, op, count);
        CheckAllReduce<int64_t>(backend, rank, op, count);
      }
    }
    CheckAllReduce<float>(backend, rank, ReduceOp::kSum, 3'000'001);  // several pieces
  });
}

TEST_P(TransportCollectivesTest, TheSumIsDividedOnceAtTheEnd) {
  Group().Run([&](Backend& backend, int rank) {
    std::vector<double> values(100, rank + 1);
    TestCall call(Next(rank, {.kind = Kind::kAllReduce, .dtype = DType::kFloat64, .count = 100}));
    ExpectOk(AllReduce(backend, Bytes(values), 100, {DType::kFloat64, ReduceOp::kSum, ranks()},
                       call.call),
             call.operation);
    EXPECT_THAT(values, testing::Each((ranks() + 1) / 2.0));
  });
}

TEST_P(TransportCollectivesTest, AllReduceHasTheSameBitsOnAllRanks) {
  std::vector<std::vector<float>> results(static_cast<size_t>(ranks()));
  Group().Run([&](Backend& backend, int rank) {
    std::vector<float> values(1001);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i) + static_cast<float>(rank));
    }
    TestCall call(Next(rank, {.kind = Kind::kAllReduce, .count = values.size()}));
    ExpectOk(AllReduce(backend, Bytes(values), values.size(), {DType::kFloat32, ReduceOp::kSum},
                       call.call),
             call.operation);
    results[static_cast<size_t>(rank)] = values;
  });
  EXPECT_THAT(results, testing::Each(results[0]));
}

TEST_P(TransportCollectivesTest, ReduceWritesAtTheRootOnly) {
  Group().Run([&](Backend& backend, int rank) {
    for (int root = 0; root < ranks(); ++root) {
      for (size_t count : Counts()) {
        CheckReduce<float>(backend, rank, root, ReduceOp::kSum, count);
      }
      CheckReduce<double>(backend, rank, root, ReduceOp::kMax, 1000);
      CheckReduce<int16_t>(backend, rank, root, ReduceOp::kProduct, 1000);
    }
  });
}

TEST_P(TransportCollectivesTest, ReduceScatterGivesEachItsPartOfAnySize) {
  Group().Run([&](Backend& backend, int rank) {
    for (size_t count : Counts()) {
      CheckReduceScatter<float>(backend, rank, ReduceOp::kSum, count);
      CheckReduceScatter<double>(backend, rank, ReduceOp::kMax, count);
      CheckReduceScatter<uint32_t>(backend, rank, ReduceOp::kProduct, count);
    }
  });
}

TEST_P(TransportCollectivesTest, BroadcastCopiesTheRootToAll) {
  Group().Run([&](Backend& backend, int rank) {
    for (int root = 0; root < ranks(); ++root) {
      for (size_t count : Counts()) {
        auto values = InputOf<double>(rank, count);
        TestCall call(Next(rank, {.kind = Kind::kBroadcast, .root = root, .count = count}));
        ExpectOk(Broadcast(backend, BlockOf(values), call.call), call.operation);
        EXPECT_EQ(values, InputOf<double>(root, count)) << "from rank " << root;
      }
    }
  });
}

TEST_P(TransportCollectivesTest, GathersScattersAndAllToAllMoveBlocksOfAnySizes) {
  Group().Run([&](Backend& backend, int rank) {
    for (size_t count : Counts()) {
      CheckGathers(backend, rank, count);
      CheckScatters(backend, rank, count);
      CheckAllToAll(backend, rank, count);
    }
  });
}

TEST_P(TransportCollectivesTest, NobodyLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered = 0;
  Group().Run([&](Backend& backend, int rank) {
    for (int round = 1; round <= 20; ++round) {
      entered += 1;
      TestCall call(Next(rank, {.kind = Kind::kBarrier}));
      ExpectOk(Barrier(backend, call.call), call.operation);
      EXPECT_GE(entered, round * ranks());
    }
  });
}

TEST_P(TransportCollectivesTest, AllIsTheSameWhenAllCallsAreChecked) {
  BackendGroup group = Group();
  group.configure = [](BackendConfig& config) { config.checks_all_calls = true; };
  group.Run([&](Backend& backend, int rank) {
    CheckAllReduce<float>(backend, rank, ReduceOp::kSum, 1000);
    CheckGathers(backend, rank, 10);
    CheckReduce<float>(backend, rank, 0, ReduceOp::kSum, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, TransportCollectivesTest,
                         testing::Combine(testing::ValuesIn(kBackends), testing::Range(1, 10)),
                         [](const auto& each) {
                           return std::string(std::get<const char*>(each.param)) + "_" +
                                  std::to_string(std::get<int>(each.param));
                         });

}  // namespace
}  // namespace rankrun::comm::transport

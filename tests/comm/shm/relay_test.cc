#include "comm/shm/relay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/comm/shm/ranks.h"

namespace rankrun::comm::shm {
namespace {

using testing::HasSubstr;
using Int32s = std::vector<int32_t>;
using Kind = Operation::Kind;

constexpr Reduction kSum{.dtype = DType::kInt32, .op = ReduceOp::kSum};

std::byte* BytesOf(Int32s& values) { return reinterpret_cast<std::byte*>(values.data()); }

Result<void> Relayed(ShmRank& me, Int32s& data, int root, const Relay::Exchange& exchange) {
  Call call = me.Next(Kind::kAllReduce, DType::kInt32, data.size(), root);
  const Block block{BytesOf(data), data.size() * sizeof(int32_t)};
  return me.backend().relay().Run(
      {.kind = Kind::kAllReduce, .root = root, .outputs = {&block, 1}, .reduction = kSum}, call,
      exchange);
}

// Adds `outside`, the sum of the ranks elsewhere.
Relay::Exchange AddTo(size_t count, int32_t outside) {
  return [=](std::byte* data) -> Result<void> {
    auto* values = reinterpret_cast<int32_t*>(data);
    for (size_t i = 0; i < count; ++i) values[i] += outside;
    return {};
  };
}

// Sums that differ from call to call, so that data of another call is seen.
void RelaySums(ShmRank& me, size_t count, int root, int32_t call) {
  int n = me.ranks();
  Int32s data(count, me.rank() * call);
  auto done = Relayed(me, data, root, AddTo(count, 1000 + call));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(data, Int32s(count, n * (n - 1) / 2 * call + 1000 + call))
      << count << " elements, root " << root;
}

class RelaySumTest : public testing::TestWithParam<int> {};

// Calls of all sizes follow each other, beside other collectives that use the same memory.
TEST_P(RelaySumTest, ReachesAllRanks) {
  RunShmRanks(GetParam(), [](ShmRank& me) {
    int32_t call = 0;
    for (int round = 0; round < 20; ++round) {
      for (size_t count : {0U, 1U, 28U, 29U, 4096U, 65536U, 3U, 3U, 3U}) {
        RelaySums(me, count, round % me.ranks(), ++call);
        std::vector<float> others(count + static_cast<size_t>(round) * 5000, 1);
        auto done = round % 3 == 0 ? me.Sum(others) : Result<void>{};
        ASSERT_TRUE(done) << done.error().message;
        float sum = round % 3 == 0 ? static_cast<float>(me.ranks()) : 1.0F;
        EXPECT_EQ(others, std::vector<float>(others.size(), sum));
      }
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, RelaySumTest, testing::Values(1, 2, 3, 5));

TEST(RelayTest, AnErrorOfTheExchangeIsThatOfTheRoot) {
  RunShmRanks(3, [](ShmRank& me) {
    Int32s data(8);
    auto done = Relayed(me, data, 1, [&](std::byte*) -> Result<void> {
      Error lost{ErrorCode::kPeerLost, "host 2 is gone"};
      me.backend().Fail(lost);
      return lost;
    });
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kPeerLost);
    EXPECT_THAT(done.error().message, HasSubstr("host 2 is gone"));
  });
}

TEST(RelayTest, AnotherCallOnAnyRankIsAMismatch) {
  for (int other = 0; other < 3; ++other) {
    RunShmRanks(3, [&](ShmRank& me) {
      Int32s data(5000);
      auto done = me.rank() == other ? me.Barrier() : Relayed(me, data, 0, AddTo(5000, 1));
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, ErrorCode::kMismatch);
      std::string text = "rank " + std::to_string(other) + " called Barrier #1";
      EXPECT_THAT(done.error().message, HasSubstr(text));
    });
  }
}

TEST(RelayTest, TheRootGetsARefusal) {
  RunShmRanks(3, [](ShmRank& me) {
    if (me.rank() == 2) {
      me.backend().Refuse(me.Next(Kind::kAllReduce, DType::kInt32, 8, 0), "it has no memory");
      return;
    }
    Int32s data(8);
    auto done = Relayed(me, data, 0, AddTo(8, 1));
    if (me.rank() == 0) me.backend().Fail({ErrorCode::kSystem, done.error().message});
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, HasSubstr("rank 2 refused AllReduce #1"));
  });
}

TEST(RelayTest, ATimeOutNamesTheLateRank) {
  std::atomic<int> ended = 0;
  RunShmRanks(3, [&](ShmRank& me) {
    if (me.rank() == 2) {
      while (ended.load() < 2) std::this_thread::yield();
      return;
    }
    // The root explains it: the others wait longer.
    me.set_timeout(std::chrono::milliseconds(me.rank() == 0 ? 50 : 30'000));
    Int32s data(8);
    auto done = Relayed(me, data, 0, AddTo(8, 1));
    ended += 1;
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(done.error().message, HasSubstr("rank 2 has not called AllReduce #1"));
  });
}

}  // namespace
}  // namespace rankrun::comm::shm

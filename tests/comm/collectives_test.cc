// The collectives of the Gloo plug-in against plain loops.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "tests/comm/joined.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

// Small whole numbers: sums and products are exact in any order.
double ValueOf(int global_rank, size_t i) {
  return static_cast<double>((static_cast<size_t>(global_rank) * 3 + i * 5) % 7) - 2;
}

double Reduced(ReduceOp op, int world_size, size_t i) {
  double result = ValueOf(0, i);
  for (int r = 1; r < world_size; ++r) {
    const double value = ValueOf(r, i);
    switch (op) {
      case ReduceOp::kSum:
      case ReduceOp::kAvg:
        result += value;
        break;
      case ReduceOp::kProduct:
        result *= value;
        break;
      case ReduceOp::kMin:
        result = std::min(result, value);
        break;
      case ReduceOp::kMax:
        result = std::max(result, value);
        break;
    }
  }
  return op == ReduceOp::kAvg ? result / world_size : result;
}

template <typename T>
std::vector<T> InputOf(int global_rank, size_t count) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<T>(ValueOf(global_rank, i));
  return values;
}

template <typename T>
void ExpectReduced(Group& group, ReduceOp op, size_t count) {
  auto values = InputOf<T>(group.global_rank(), count);
  const auto ok = group.AllReduce(values, op, {});
  ASSERT_TRUE(ok) << ok.error().message;
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(values[i], static_cast<T>(Reduced(op, group.world_size(), i)))
        << Describe({.kind = Operation::Kind::kAllReduce, .count = count, .op = op}) << " at " << i
        << ", rank " << group.global_rank() << " of " << group.world_size();
  }
}

struct CollectivesTest : testing::TestWithParam<int> {
  // Runs `body` on every rank of a group of GetParam() ranks.
  void OnAllRanks(const std::function<void(Group&)>& body) {
    RunRanks(GetParam(), [&](int r) {
      const auto group = Joined(keys, JoinAs(r, GetParam()));
      if (group) body(*group);
    });
  }

  std::vector<size_t> Counts() const {
    const auto p = static_cast<size_t>(GetParam());
    return {0, 1, p - 1, p, p + 1, 1000, 100'003};
  }

  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();
};

TEST_P(CollectivesTest, AllReduceIsTheLoopOverAllRanks) {
  OnAllRanks([&](Group& group) {
    for (size_t count : Counts()) {
      for (ReduceOp op : {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax}) {
        ExpectReduced<float>(group, op, count);
        ExpectReduced<double>(group, op, count);
      }
    }
  });
}

TEST_P(CollectivesTest, AverageIsTheSumDividedByTheWorldSize) {
  OnAllRanks([&](Group& group) {
    ExpectReduced<float>(group, ReduceOp::kAvg, 1000);
    ExpectReduced<double>(group, ReduceOp::kAvg, 1000);
  });
}

TEST_P(CollectivesTest, AllReduceHasTheSameBitsOnAllRanks) {
  std::vector<std::vector<float>> results(static_cast<size_t>(GetParam()));
  OnAllRanks([&](Group& group) {
    std::vector<float> values(1001);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = std::sin(static_cast<float>(i) + static_cast<float>(group.global_rank()));
    }
    ASSERT_TRUE(group.AllReduce(values, ReduceOp::kSum, {}));
    results[static_cast<size_t>(group.global_rank())] = values;
  });
  EXPECT_THAT(results, Each(results[0]));
}

TEST_P(CollectivesTest, ANanOfAnyRankIsSeenByAll) {
  OnAllRanks([&](Group& group) {
    for (int source = 0; source < group.world_size(); ++source) {
      for (ReduceOp op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kSum}) {
        const bool mine = group.global_rank() == source;
        std::vector<float> value{mine ? std::numeric_limits<float>::quiet_NaN() : 1.0F, 2.0F};
        ASSERT_TRUE(group.AllReduce(value, op, {}));
        EXPECT_TRUE(std::isnan(value[0]));
        EXPECT_FALSE(std::isnan(value[1]));
      }
    }
  });
}

TEST_P(CollectivesTest, BroadcastCopiesTheSourceToAll) {
  OnAllRanks([&](Group& group) {
    for (int source = 0; source < group.world_size(); ++source) {
      for (size_t count : Counts()) {
        auto values = InputOf<double>(group.global_rank(), count);
        ASSERT_TRUE(group.Broadcast(values, source, {}));
        ASSERT_EQ(values, InputOf<double>(source, count)) << "from rank " << source;
      }
    }
  });
}

TEST_P(CollectivesTest, NobodyLeavesABarrierBeforeAllHaveEntered) {
  std::atomic<int> entered = 0;
  OnAllRanks([&](Group& group) {
    for (int round = 1; round <= 20; ++round) {
      entered += 1;
      ASSERT_TRUE(group.Barrier({}));
      EXPECT_GE(entered, round * GetParam());
    }
  });
}

TEST_P(CollectivesTest, MonitoredBarriersAndCollectivesMix) {
  OnAllRanks([&](Group& group) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(group.MonitoredBarrier({}));
      ExpectReduced<float>(group, ReduceOp::kSum, 10);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(WorldSizes, CollectivesTest, testing::Values(1, 2, 3, 4));

struct DisagreementTest : testing::Test {
  // What each rank of a group of `world_size` is told when it does `body`.
  std::vector<std::string> Told(int world_size, const std::function<Result<void>(Group&)>& body) {
    std::vector<std::string> told(static_cast<size_t>(world_size));
    RunRanks(world_size, [&](int r) {
      const auto group = Joined(keys, JoinAs(r, world_size));
      if (!group) return;
      const auto ok = body(*group);
      told[static_cast<size_t>(r)] = ok ? "ok" : ok.error().message;
      EXPECT_EQ(group->state() == GroupState::kBroken, !ok);
    });
    return told;
  }

  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();
};

TEST_F(DisagreementTest, DifferentCountsFailOnAllRanksWithBothNamed) {
  const auto told = Told(2, [](Group& group) {
    std::vector<float> values(group.global_rank() == 0 ? 10U : 20U);
    return group.AllReduce(values, ReduceOp::kSum, milliseconds(200));
  });
  EXPECT_THAT(told[0], StartsWith("AllReduce #1 (10 x float32, sum) of the world process group, "
                                  "rank 0 of 2: "));
  EXPECT_THAT(told[1], StartsWith("AllReduce #1 (20 x float32, sum)"));
  EXPECT_THAT(told, Each(AnyOf(HasSubstr("rank 1 in AllReduce #1 (20 x float32"),
                               HasSubstr("first to fail was rank"))));
}

TEST_F(DisagreementTest, DifferentOperationsFailOnAllRanks) {
  const auto told = Told(3, [](Group& group) {
    std::vector<float> values(10);
    if (group.global_rank() == 2) return group.Barrier(milliseconds(200));
    return group.AllReduce(values, ReduceOp::kSum, milliseconds(200));
  });
  EXPECT_THAT(told, testing::Not(testing::Contains("ok")));
}

TEST_F(DisagreementTest, ARankThatDoesNotComeIsNamedAfterTheTimeout) {
  std::atomic<int> failed = 0;
  const auto told = Told(3, [&](Group& group) -> Result<void> {
    if (group.global_rank() != 1) {
      auto ok = group.Barrier(milliseconds(100));
      failed += 1;
      failed.notify_all();
      return ok;
    }
    for (int now = failed; now < 2; now = failed) failed.wait(now);
    return {};
  });
  EXPECT_THAT(told[0], HasSubstr("no word from rank 1"));
  EXPECT_THAT(told[2], HasSubstr("no word from rank 1"));
}

}  // namespace
}  // namespace rankrun::comm

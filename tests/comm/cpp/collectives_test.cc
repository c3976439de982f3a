// The collectives of both backends, through a group, against plain loops.

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/comm/joined.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// Small whole numbers: sums and products are exact in any order.
double ValueOf(int global_rank, size_t i) {
  return static_cast<double>((static_cast<size_t>(global_rank) * 3 + i * 5) % 7) - 2;
}

double Reduced(ReduceOp::Kind op, int world_size, size_t i) {
  double result = ValueOf(0, i);
  for (int r = 1; r < world_size; ++r) {
    double value = ValueOf(r, i);
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
      default:
        ADD_FAILURE() << "not in this test";
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
void ExpectReduced(Group& group, ReduceOp::Kind op, size_t count) {
  auto values = InputOf<T>(group.identity().global_rank, count);
  auto ok = group.AllReduce(values, op, {});
  ASSERT_TRUE(ok) << ok.error().message;
  for (size_t i = 0; i < count; ++i) {
    ASSERT_EQ(values[i], static_cast<T>(Reduced(op, group.identity().world_size(), i)))
        << Describe({.kind = Operation::Kind::kAllReduce, .op = op, .count = count}) << " at " << i
        << ", rank " << group.identity().global_rank << " of " << group.identity().world_size();
  }
}

struct Ranks {
  int world_size;
  const char* backend;
};

// Without it the name of a test would contain the address of the string.
void PrintTo(const Ranks& ranks, std::ostream* to) { *to << ranks.backend << ranks.world_size; }

struct CollectivesTest : testing::TestWithParam<Ranks> {
  // Runs `body` on every rank of the group.
  void OnAllRanks(const std::function<void(Group&)>& body) {
    auto [world_size, backend] = GetParam();
    RunRanks(world_size, [&, size = world_size, name = backend](int r) {
      auto group = Joined(keys, JoinAs(r, size, name));
      if (group) body(*group);
    });
  }

  std::vector<size_t> Counts() const {
    auto p = static_cast<size_t>(GetParam().world_size);
    return {0, 1, p - 1, p, p + 1, 1000, 100'003};
  }

  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();
};

TEST_P(CollectivesTest, AllReduceIsTheLoopOverAllRanks) {
  OnAllRanks([&](Group& group) {
    for (size_t count : Counts()) {
      for (const ReduceOp::Kind op :
           {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax}) {
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
  std::vector<std::vector<float>> results(static_cast<size_t>(GetParam().world_size));
  OnAllRanks([&](Group& group) {
    std::vector<float> values(1001);
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] =
          std::sin(static_cast<float>(i) + static_cast<float>(group.identity().global_rank));
    }
    ASSERT_TRUE(group.AllReduce(values, ReduceOp::kSum, {}));
    results[static_cast<size_t>(group.identity().global_rank)] = values;
  });
  EXPECT_THAT(results, Each(results[0]));
}

TEST_P(CollectivesTest, ANanOfAnyRankIsSeenByAll) {
  OnAllRanks([&](Group& group) {
    for (int source = 0; source < group.identity().world_size(); ++source) {
      for (ReduceOp::Kind op : {ReduceOp::kMin, ReduceOp::kMax, ReduceOp::kSum}) {
        bool mine = group.identity().global_rank == source;
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
    for (int source = 0; source < group.identity().world_size(); ++source) {
      for (size_t count : Counts()) {
        auto values = InputOf<double>(group.identity().global_rank, count);
        ASSERT_TRUE(group.Broadcast(values, GroupRank{source}, {}));
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
      EXPECT_GE(entered, round * GetParam().world_size);
    }
  });
}

TEST_P(CollectivesTest, MonitoredBarriersAndCollectivesMix) {
  OnAllRanks([&](Group& group) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_TRUE(group.MonitoredBarrier({}, true));
      ExpectReduced<float>(group, ReduceOp::kSum, 10);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(WorldSizes, CollectivesTest,
                         testing::Values(Ranks{1, "gloo"}, Ranks{2, "gloo"}, Ranks{3, "gloo"},
                                         Ranks{4, "gloo"}, Ranks{1, "shm"}, Ranks{2, "shm"},
                                         Ranks{3, "shm"}, Ranks{4, "shm"}, Ranks{1, "tcp"},
                                         Ranks{2, "tcp"}, Ranks{3, "tcp"}, Ranks{4, "tcp"}),
                         [](const auto& test) {
                           return test.param.backend + std::to_string(test.param.world_size);
                         });

struct DisagreementTest : testing::TestWithParam<const char*> {
  // Returns the error of each rank of a group of `world_size` that runs `body`.
  std::vector<std::string> Told(int world_size, const std::function<Result<Work>(Group&)>& body) {
    std::vector<std::string> told(static_cast<size_t>(world_size));
    RunRanks(world_size, [&](int r) {
      auto group = Joined(keys, JoinAs(r, world_size, GetParam()));
      if (!group) return;
      auto ok = body(*group);
      told[static_cast<size_t>(r)] = ok ? "ok" : ok.error().message;
    });
    return told;
  }

  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();
};

TEST_P(DisagreementTest, DifferentCountsFailOnAllRanksWithBothNamed) {
  auto told = Told(2, [](Group& group) {
    std::vector<float> values(group.identity().global_rank == 0 ? 10U : 20U);
    return group.AllReduce(values, ReduceOp::kSum, {});
  });
  EXPECT_THAT(told, Each(AllOf(HasSubstr("rank 0 called AllReduce #1 (10 x float32, sum)"),
                               HasSubstr("rank 1 called AllReduce #1 (20 x float32, sum)"))));
}

TEST_P(DisagreementTest, DifferentOperationsFailOnAllRanks) {
  auto told = Told(3, [](Group& group) {
    std::vector<float> values(10);
    if (group.identity().global_rank == 2) return group.Barrier({});
    return group.AllReduce(values, ReduceOp::kSum, {});
  });
  EXPECT_THAT(told, Each(AllOf(HasSubstr("AllReduce #1"), HasSubstr("rank 2 called Barrier #1"))));
}

TEST_P(DisagreementTest, ARefusedCallFailsOnAllRanksAndNamesTheArgument) {
  auto told = Told(3, [](Group& group) {
    std::vector<float> values(10);
    bool wrong = group.identity().global_rank == 1;
    return group.AllReduce(values, wrong ? ReduceOp::kBitAnd : ReduceOp::kSum, {});
  });
  for (size_t r : {0U, 2U}) EXPECT_THAT(told[r], HasSubstr("rank 1 refused AllReduce #1"));
  EXPECT_THAT(told[1], HasSubstr("float32"));
}

TEST_P(DisagreementTest, AMissingRankIsNamedAfterTheTimeout) {
  std::atomic<int> failed = 0;
  auto told = Told(3, [&](Group& group) -> Result<Work> {
    if (group.identity().global_rank != 1) {
      auto ok = group.Barrier({milliseconds(100)});
      failed += 1;
      failed.notify_all();
      return ok;
    }
    for (int now = failed; now < 2; now = failed) failed.wait(now);
    return Work();
  });
  EXPECT_THAT(told[0], HasSubstr("rank 1"));
  EXPECT_THAT(told[2], HasSubstr("rank 1"));
}

INSTANTIATE_TEST_SUITE_P(Backends, DisagreementTest, testing::Values("gloo", "tcp", "shm"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace rankrun::comm

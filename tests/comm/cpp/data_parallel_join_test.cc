// A DataParallel in a Join: ranks with different numbers of inputs.

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <vector>

#include <rankrun/training/data_parallel.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Inputs = std::vector<int>;  // of each rank

constexpr const char* kDivision = "divide_by_initial_world_size";

double GradientOf(size_t rank, int step, size_t parameter) {
  return static_cast<double>((rank + 1) * 10 + static_cast<size_t>(step) + parameter);
}

// Returns the parameters that the last joiner has in the end.
std::vector<double> Expected(const Inputs& inputs, bool divides_by_all) {
  std::vector<double> weights{0.5, 0.25};
  for (int step = 0; step < *std::max_element(inputs.begin(), inputs.end()); ++step) {
    int active = 0;
    std::vector<double> sums{0, 0};
    for (size_t rank = 0; rank < inputs.size(); ++rank) {
      if (inputs[rank] <= step) continue;
      active += 1;
      for (size_t i = 0; i < 2; ++i) sums[i] += GradientOf(rank, step, i);
    }
    int divisor = divides_by_all ? static_cast<int>(inputs.size()) : active;
    for (size_t i = 0; i < 2; ++i) weights[i] -= sums[i] / divisor;
  }
  return weights;
}

// Model of two parameters with a bucket each.
class Two {
 public:
  explicit Two(ProcessGroup& world, DataParallelOptions options = {})
      : rank_(static_cast<size_t>(world.group_rank())),
        model_(world, {{"a", weights_[0], gradients_[0]}, {"b", weights_[1], gradients_[1]}},
               Small(std::move(options))) {}

  DataParallel& model() { return model_; }
  std::vector<double> weights() const { return {weights_[0][0], weights_[1][0]}; }

  void Step(int step) {
    model_.BeginStep();
    for (size_t i = 2; i-- > 0;) {
      gradients_[i][0] = GradientOf(rank_, step, i);
      model_.Ready(i);
    }
    model_.FinishStep();
    for (size_t i = 0; i < 2; ++i) weights_[i][0] -= gradients_[i][0];
  }

 private:
  static DataParallelOptions Small(DataParallelOptions options) {
    options.bucket_cap_bytes = options.first_bucket_cap_bytes = 1;
    return options;
  }

  const size_t rank_;
  std::vector<std::vector<double>> weights_{{0.5}, {0.25}};
  std::vector<std::vector<double>> gradients_{{0}, {0}};
  DataParallel model_;
};

struct DataParallelJoinTest : testing::TestWithParam<const char*> {
  // Returns the error in the parameters of each rank, empty if there is none.
  std::vector<std::string> Train(const Inputs& inputs, std::optional<bool> divides_by_all,
                                 const DataParallelOptions& options = {}) {
    const std::vector<double> want = Expected(inputs, divides_by_all.value_or(true));
    return InWorld(static_cast<int>(inputs.size()), GetParam(), [&](ProcessGroup& world) {
      Two two(world, options);
      JoinOptions join_options;
      if (divides_by_all) join_options.arguments[kDivision] = *divides_by_all;
      Join join({&two.model()}, join_options);
      for (int i = 0; i < inputs[static_cast<size_t>(world.group_rank())]; ++i) two.Step(i);
      join.Finish();
      std::vector<double> got = two.weights();
      if (got == want) return std::string();
      return std::to_string(got[0]) + ", want " + std::to_string(want[0]);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, DataParallelJoinTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(DataParallelJoinTest, J1_OneRankHasOneInputMore) {
  EXPECT_THAT(Train({10, 11}, std::nullopt), Each(""));
  EXPECT_THAT(Train({10, 11}, false), Each(""));
}

TEST_P(DataParallelJoinTest, J2_EqualInputs) {
  EXPECT_THAT(Train({5, 5}, true), Each(""));
  EXPECT_THAT(Train({5, 5}, false), Each(""));
}

TEST_P(DataParallelJoinTest, J3_ARankWithoutInputs) {
  EXPECT_THAT(Train({0, 3}, true), Each(""));
  EXPECT_THAT(Train({3, 0}, false), Each(""));
}

TEST_P(DataParallelJoinTest, J4_TwoLastJoiners) {
  EXPECT_THAT(Train({2, 4, 4}, true), Each(""));
  EXPECT_THAT(Train({2, 4, 4}, false), Each(""));
}

TEST_P(DataParallelJoinTest, WithASearchForUnusedParameters) {
  EXPECT_THAT(Train({1, 3}, false, {.find_unused_parameters = true}), Each(""));
}

TEST_P(DataParallelJoinTest, BuffersAreThoseOfTheLargestRankThatHasInputs) {
  auto texts = InWorld(3, GetParam(), [](ProcessGroup& world) {
    std::vector<double> mean{0};
    Two two(world, {.buffers = {{"mean", mean}}});
    std::string text;
    Join join({&two.model()});
    for (int i = 0; i < (world.group_rank() == 1 ? 3 : 1); ++i) {
      mean[0] = 10 * i + world.group_rank();
      two.Step(i);
      text += std::to_string(static_cast<int>(mean[0])) + " ";
      mean[0] += 100;  // by the forward pass
    }
    join.Finish();
    return text + "end " + std::to_string(static_cast<int>(mean[0]));
  });
  EXPECT_THAT(texts, ElementsAre("2 end 121", "2 11 21 end 121", "2 end 121"));
}

TEST_P(DataParallelJoinTest, StepsInNoSyncAreShadowed) {
  auto texts = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<float> weight{0}, gradient{0};
    DataParallel model(world, {{"weight", weight, gradient}});
    Join join({&model}, {.arguments = {{kDivision, false}}});
    std::string text;
    for (int i = 0; i < 4 * world.group_rank(); ++i) {
      std::optional<DataParallel::NoSync> scope;
      if (i % 2 == 0) scope.emplace(model);
      model.BeginStep();
      gradient[0] += 1;
      model.Ready(0);
      model.FinishStep();
    }
    weight[0] = gradient[0];
    join.Finish();
    return std::to_string(static_cast<int>(weight[0]));
  });
  EXPECT_THAT(texts, Each("4"));
}

// Rank 0 has used the first parameter before, in a step that others have ended.
TEST_P(DataParallelJoinTest, AShadowedStepEndsTheUseOfParameters) {
  auto texts = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<float> weights[2]{{0}, {0}}, gradients[2]{{0}, {0}};
    DataParallel model(world, {{"a", weights[0], gradients[0]}, {"b", weights[1], gradients[1]}},
                       {.find_unused_parameters = true});
    auto step = [&](std::initializer_list<size_t> used) {
      model.BeginStep();
      for (size_t i : used) model.Ready(i);
      model.FinishStep();
    };
    Join join({&model});
    {
      DataParallel::NoSync scope(model);
      step({0, 1});
    }
    if (world.group_rank() == 1) step({0, 1});
    join.Finish();
    gradients[0][0] = 7.0F + static_cast<float>(world.group_rank());
    step({1});
    return std::to_string(static_cast<int>(gradients[0][0]));
  });
  EXPECT_THAT(texts, ElementsAre("7", "8")) << "no rank has used it";
}

TEST_P(DataParallelJoinTest, ItNeedNotBeTheFirstJoinable) {
  struct First : Joinable {
    explicit First(ProcessGroup& of) : group(of) {}
    std::unique_ptr<JoinHook> MakeJoinHook(const JoinArguments&) override {
      return std::make_unique<JoinHook>();
    }
    ProcessGroup& join_process_group() const override { return group; }
    ProcessGroup& group;
  };
  const std::vector<double> want = Expected({1, 4}, false);
  auto texts = InWorld(2, GetParam(), [&](ProcessGroup& world) {
    First first(world);
    Two two(world);
    Join join({&first, &two.model()}, {.arguments = {{kDivision, false}}});
    for (int i = 0; i < (world.group_rank() == 0 ? 1 : 4); ++i) {
      NotifyJoinContext(first);
      two.Step(i);
    }
    join.Finish();
    return std::string(two.weights() == want ? "" : "wrong");
  });
  EXPECT_THAT(texts, Each(""));
}

TEST_P(DataParallelJoinTest, ADisabledJoinChangesNothing) {
  const std::vector<double> want = Expected({3, 3}, true);
  auto texts = InWorld(2, GetParam(), [&](ProcessGroup& world) {
    Two two(world);
    uint64_t before = world.Barrier().sequence();
    Join join({&two.model()}, {.enable = false, .arguments = {{kDivision, false}}});
    for (int i = 0; i < 3; ++i) two.Step(i);
    join.Finish();
    uint64_t collectives = world.Barrier().sequence() - before - 1;
    return std::to_string(collectives) + (two.weights() == want ? "" : " wrong");
  });
  EXPECT_THAT(texts, Each("6"));
}

TEST(DataParallelJoinErrorTest, AnArgumentOfAnotherTypeIsRefused) {
  auto texts = InWorld(1, "shm", [](ProcessGroup& world) {
    Two two(world);
    return ErrorOf([&] { Join join({&two.model()}, {.arguments = {{kDivision, 1}}}); });
  });
  EXPECT_THAT(texts, Each(HasSubstr("divide_by_initial_world_size has another type: want bool")));
}

TEST(DataParallelJoinErrorTest, AnEarlyEndThrowsOnAllRanks) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Two two(world);
    return ErrorOf([&] {
      Join join({&two.model()}, {.throw_on_early_termination = true});
      for (int i = 0; i < 2 + world.group_rank(); ++i) two.Step(i);
      join.Finish();
    });
  });
  EXPECT_THAT(texts[0], HasSubstr("global rank 0 has no more inputs"));
  EXPECT_THAT(texts[1], HasSubstr("at least one rank has no more inputs"));
}

}  // namespace
}  // namespace rankrun::comm

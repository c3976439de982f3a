#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include <rankrun/diagnosis/debug.h>
#include <rankrun/diagnosis/operation_hooks.h>
#include <rankrun/training/data_parallel.h>

#include "base/log.h"
#include "tests/comm/cpp/toy_model.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

struct DataParallelTest : testing::TestWithParam<const char*> {
  std::vector<std::string> In(int world_size,
                              const std::function<std::string(ProcessGroup&)>& body) {
    return InWorld(world_size, GetParam(), [&](ProcessGroup& world) {
      SetLogSink([](std::string_view) {});
      return body(world);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, DataParallelTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

// Small buckets: the gradients of ToyModel are in several.
const DataParallelOptions kSmallBuckets{.bucket_cap_bytes = 64, .first_bucket_cap_bytes = 16};

TEST_P(DataParallelTest, GradientsAreTheAveragesThatOneProcessComputes) {
  for (int world_size : {1, 2, 3}) {
    auto texts = In(world_size, [](ProcessGroup& world) {
      ToyModel toy;
      DataParallel model(world, toy.parameters(), kSmallBuckets);
      if (model.log().bucket_sizes.size() != 3) return std::string("a wrong number of buckets");
      for (int step = 0; step < 5; ++step) {
        model.BeginStep();
        toy.ComputeGradients(world.group_rank(), step);
        // Each rank computes them in another order.
        for (size_t i = 0; i < toy.size(); ++i) {
          model.Ready((i + static_cast<size_t>(world.group_rank() + step)) % toy.size());
        }
        model.FinishStep();
        if (std::string wrong = toy.Compare(step, world.world_size()); !wrong.empty()) return wrong;
      }
      return std::string();
    });
    EXPECT_THAT(texts, Each(""));
  }
}

TEST_P(DataParallelTest, ParametersAndBuffersAreThoseOfRankZero) {
  auto texts = In(2, [](ProcessGroup& world) {
    ToyModel toy;
    std::vector<double> mean{10.0 + world.group_rank()};
    toy.first()[0] = static_cast<float>(5 + world.group_rank());
    DataParallel model(world, toy.parameters(), {.buffers = {{"mean", mean}}});
    std::string text = std::to_string(static_cast<int>(toy.first()[0]));
    for (int step = 0; step < 2; ++step) {
      text += " " + std::to_string(static_cast<int>(mean[0]));
      mean[0] = 100 * (step + 1) + world.group_rank();
      model.BeginStep();
      for (size_t i = 0; i < toy.size(); ++i) model.Ready(i);
      model.FinishStep();
    }
    return text + " " + std::to_string(static_cast<int>(mean[0]));
  });
  EXPECT_THAT(texts, Each("5 10 100 200"));
}

TEST_P(DataParallelTest, NoSyncAddsUpGradientsOfSeveralSteps) {
  auto texts = In(2, [](ProcessGroup& world) {
    std::vector<float> weight{0, 0}, gradient{0, 0};
    DataParallel model(world, {{"weight", weight, gradient}});
    auto step = [&](float by) {
      model.BeginStep();
      for (float& value : gradient) value += by * static_cast<float>(world.group_rank() + 1);
      model.Ready(0);
      model.FinishStep();
    };
    uint64_t before = world.Barrier().sequence();
    {
      DataParallel::NoSync scope(model);
      step(1);
      step(10);
    }
    uint64_t collectives = world.Barrier().sequence() - before - 1;
    std::string text = std::to_string(collectives) + " collectives";
    text += gradient[1] == static_cast<float>(11 * (world.group_rank() + 1)) ? "" : ", wrong sums";
    step(100);
    return text + ", " + std::to_string(static_cast<int>(2 * gradient[1]));
  });
  EXPECT_THAT(texts, Each("0 collectives, 333"));
}

// Makes a step in which rank r marks only the gradients in ready[r]; the gradients are
// 10 * (rank + 1), before it they are 7. Returns the gradients.
std::string StepWith(ProcessGroup& world, DataParallel& model,
                     std::vector<std::vector<float>>& gradients,
                     const std::vector<std::vector<size_t>>& ready) {
  auto rank = static_cast<size_t>(world.group_rank());
  for (auto& gradient : gradients) gradient = {7};
  model.BeginStep();
  for (size_t i : ready[rank]) {
    gradients[i][0] = 10 * static_cast<float>(rank + 1);
    model.Ready(i);
  }
  model.FinishStep();
  std::string text;
  for (auto& gradient : gradients) text += " " + std::to_string(static_cast<int>(gradient[0]));
  return text;
}

// A model of three parameters with a bucket each.
struct Three {
  std::vector<std::vector<float>> weights{{0}, {0}, {0}};
  std::vector<std::vector<float>> gradients{{7}, {7}, {7}};

  std::vector<Parameter> parameters() {
    return {{"a.weight", weights[0], gradients[0]},
            {"b.weight", weights[1], gradients[1]},
            {"c.weight", weights[2], gradients[2]}};
  }
  static DataParallelOptions Options(bool find_unused_parameters) {
    return {.bucket_cap_bytes = 4,
            .first_bucket_cap_bytes = 4,
            .find_unused_parameters = find_unused_parameters};
  }
};

TEST_P(DataParallelTest, ABucketIsReducedWhileTheNextIsComputed) {
  auto texts = In(2, [](ProcessGroup& world) {
    std::atomic<int> reduced = 0;
    OperationHooks hooks({.on_start = {}, .on_end = [&](const OperationInfo& operation) {
                            if (operation.name == "AllReduce") reduced += 1;
                          }});
    Three three;
    DataParallel model(world, three.parameters(), Three::Options(false));
    std::string text;
    model.BeginStep();
    for (int i = 2; i >= 0; --i) {
      model.Ready(static_cast<size_t>(i));
      auto deadline = MonotonicClock().Now() + std::chrono::milliseconds(kLoadedMs);
      while (reduced < 3 - i && MonotonicClock().Now() < deadline) std::this_thread::yield();
      text += " " + std::to_string(reduced);
    }
    model.FinishStep();
    return text;
  });
  EXPECT_THAT(texts, Each(" 1 2 3"));
}

TEST_P(DataParallelTest, AnUnusedParameterCountsAsZeroAndOneThatNoRankUsesStays) {
  auto texts = In(2, [](ProcessGroup& world) {
    Three three;
    DataParallel model(world, three.parameters(), Three::Options(true));
    std::string text = StepWith(world, model, three.gradients, {{0, 1, 2}, {2, 1, 0}});
    text += "," + StepWith(world, model, three.gradients, {{2}, {2, 1}});
    text += "," + StepWith(world, model, three.gradients, {{}, {}});
    return text + "," + StepWith(world, model, three.gradients, {{0}, {}});
  });
  EXPECT_THAT(texts, Each(" 15 15 15, 7 10 15, 7 7 7, 5 7 7"));
}

TEST_P(DataParallelTest, AParameterUsedInNoSyncOnlyHasItsGradient) {
  auto texts = In(2, [](ProcessGroup& world) {
    Three three;
    DataParallel model(world, three.parameters(), Three::Options(true));
    {
      DataParallel::NoSync scope(model);
      StepWith(world, model, three.gradients, {{0}, {}});
    }
    model.BeginStep();
    model.FinishStep();
    std::string text;
    for (auto& gradient : three.gradients) text += " " + std::to_string(int(gradient[0]));
    return text;
  });
  EXPECT_THAT(texts, Each(" 5 7 7"));
}

TEST_P(DataParallelTest, GradientsThatAreMissingAreNamedIfTheDebugLevelIsSet) {
  auto error_at = [this](DebugLevel level) {
    return In(1, [level](ProcessGroup& world) {
      SetDebugLevel(level);
      Three three;
      DataParallel model(world, three.parameters(), Three::Options(false));
      model.BeginStep();
      model.Ready(1);
      return ErrorOf([&] { model.FinishStep(); });
    })[0];
  };
  const std::string names =
      "Parameters which did not receive grad for rank 0: a.weight, c.weight; Parameter indices "
      "which did not receive grad for rank 0: 0, 2";
  EXPECT_THAT(error_at(DebugLevel::kOff),
              AllOf(HasSubstr("DistError: DataParallel::FinishStep of the world process group, "
                              "rank 0 of 1: 2 of 3 gradients are not ready"),
                    HasSubstr("find_unused_parameters"), HasSubstr("RANKRUN_DEBUG=INFO"),
                    Not(HasSubstr("a.weight"))));
  EXPECT_THAT(error_at(DebugLevel::kInfo), HasSubstr(names));
  EXPECT_THAT(error_at(DebugLevel::kDetail), HasSubstr(names));
}

TEST_P(DataParallelTest, AGradientThatOneRankLacksEndsTheOthers) {
  auto texts = In(3, [](ProcessGroup& world) {
    Three three;
    DataParallel model(world, three.parameters(), Three::Options(false));
    return ErrorOf([&] {
      StepWith(world, model, three.gradients, {{2, 1, 0}, {2, 0}, {2, 1, 0}});
    });
  });
  EXPECT_THAT(texts[1], HasSubstr("1 of 3 gradients are not ready"));
  for (size_t rank : {size_t{0}, size_t{2}}) {
    EXPECT_THAT(texts[rank], HasSubstr("FinishStep with gradients that are not ready on rank 1"));
  }
}

TEST_P(DataParallelTest, DifferentModelsAreAMismatchOnAllRanks) {
  auto texts = In(3, [](ProcessGroup& world) {
    ToyModel toy;
    std::vector<Parameter> parameters = toy.parameters();
    if (world.group_rank() == 1) parameters.pop_back();
    std::string text = ErrorOf([&] { DataParallel model(world, parameters); });
    if (GetParam() == std::string("shm")) {
      parameters = toy.parameters();
      if (world.group_rank() == 2) parameters[1].name = "other";
      text += "; " + ErrorOf([&] { DataParallel model(world, parameters); });
    }
    return text;
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("DistMismatchError: DataParallel of the world process "
                                          "group, rank "),
                                HasSubstr("ranks 0, 2 have 5 parameters, rank 1 has 4 "
                                          "parameters"))));
  if (GetParam() != std::string("shm")) return;
  EXPECT_THAT(texts, Each(HasSubstr("rank 2 has parameter 1 (\"other\")")));
}

TEST_P(DataParallelTest, ABadArgumentOnOneRankIsAnErrorOnAll) {
  auto texts = In(2, [](ProcessGroup& world) {
    ToyModel toy;
    std::vector<Parameter> parameters = toy.parameters();
    if (world.group_rank() == 1) parameters.clear();
    std::string text = ErrorOf([&] { DataParallel model(world, parameters); });
    DataParallel model(world, toy.parameters());  // the group is usable
    return text;
  });
  EXPECT_THAT(texts[1], HasSubstr("DistError: DataParallel of the world process group, rank 1 of "
                                  "2: there is no parameter: want at least one"));
  EXPECT_THAT(texts[0], HasSubstr("rank 1 refused it: there is no parameter"));
}

TEST_P(DataParallelTest, AnExceptionInAStepEndsTheOtherRanks) {
  auto texts = In(2, [](ProcessGroup& world) {
    ToyModel toy;
    return ErrorOf([&] {
      try {
        DataParallel model(world, toy.parameters());
        model.BeginStep();
        if (world.group_rank() == 1) throw std::runtime_error("no disk");
        for (size_t i = 0; i < toy.size(); ++i) model.Ready(i);
        model.FinishStep();
      } catch (const DistError&) {
        throw;
      } catch (const std::runtime_error&) {
      }
    });
  });
  EXPECT_THAT(texts[0], HasSubstr("the end of a DataParallel before FinishStep"));
  EXPECT_EQ(texts[1], "no error");
}

TEST_P(DataParallelTest, TheDeathOfAPeerEndsAStep) {
  auto texts = In(3, [](ProcessGroup& world) {
    ToyModel toy;
    DataParallel model(world, toy.parameters(), kSmallBuckets);
    return ErrorOf([&] {
      for (int step = 0; step < 2; ++step) {
        model.BeginStep();
        for (size_t i = toy.size(); i-- > 0;) {
          if (world.group_rank() == 1 && step == 1 && i == 2) raise(SIGKILL);
          model.Ready(i);
        }
        model.FinishStep();
      }
    });
  });
  EXPECT_EQ(texts[1], "");
  EXPECT_THAT(texts[0], AllOf(HasSubstr("DistNetworkError: "), HasSubstr("rank 1")));
  EXPECT_THAT(texts[2], AllOf(HasSubstr("DistNetworkError: "), HasSubstr("rank 1")));
}

TEST_P(DataParallelTest, ALateRankIsATimeOut) {
  auto texts = In(2, [](ProcessGroup& world) {
    ToyModel toy;
    DataParallelOptions options;
    options.timeout = std::chrono::seconds(10);  // also of the constructor
    world.Barrier();
    DataParallel model(world, toy.parameters(), options);
    model.BeginStep();
    return ErrorOf([&] {
      if (world.group_rank() == 1) {
        world.Recv(Tensor(toy.first().data(), DType::kFloat32, 1), GlobalRank{0});
        return;
      }
      for (size_t i = 0; i < toy.size(); ++i) model.Ready(i);
      model.FinishStep();
    });
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("DistTimeoutError: "), HasSubstr("rank 1")));
  EXPECT_THAT(texts[1], HasSubstr("Error: "));
}

TEST(DataParallelUseTest, WrongUseIsAnError) {
  auto texts = InWorld(1, "shm", [](ProcessGroup& world) {
    ToyModel toy;
    DataParallel model(world, toy.parameters());
    std::string text = ErrorOf([&] { model.Ready(0); }) + "\n";
    text += ErrorOf([&] { model.FinishStep(); }) + "\n";
    text += ErrorOf([&] { model.BeginBackward(); }) + "\n";
    model.BeginStep();
    model.Ready(0);
    text += ErrorOf([&] { model.Ready(0); }) + "\n";
    text += ErrorOf([&] { model.Ready(5); }) + "\n";
    text += ErrorOf([&] { model.BeginStep(); }) + "\n";
    for (size_t i = 1; i < toy.size(); ++i) model.Ready(i);
    model.FinishStep();
    model.BeginStep();
    return text;
  });
  auto error = [](const std::string& call, const std::string& message) {
    return "DistError: DataParallel::" + call +
           " of the world process group, rank 0 of 1: " + message + "\n";
  };
  EXPECT_EQ(
      texts[0],
      error("Ready", "there is no step: want BeginStep first") +
          error("FinishStep", "there is no step: want BeginStep first") +
          error("BeginBackward", "there is no step: want BeginStep first") +
          error("Ready", "gradient 0 (\"a.weight\") is ready already: want one call in each step") +
          error("Ready", "index is 5: want 0 to 4") +
          error("BeginStep", "the step before has not ended: want FinishStep first"));
}

TEST(DataParallelUseTest, ARankOutsideTheGroupHasNone) {
  auto texts = InWorld(2, "shm", [](ProcessGroup&) {
    ProcessGroup& first = NewGroup({.ranks = {0}});
    ToyModel toy;
    return ErrorOf([&] { DataParallel model(first, toy.parameters()); });
  });
  EXPECT_EQ(texts[0], "no error");
  EXPECT_THAT(texts[1], HasSubstr("this rank is no member of the group"));
}

TEST(DataParallelUseTest, ItMayOutliveItsGroup) {
  auto texts = InWorld(1, "shm", [](ProcessGroup& world) {
    ToyModel toy;
    std::string text;
    {
      DataParallel model(world, toy.parameters());
      model.BeginStep();
      Destroy();
      text = ErrorOf([&] {
        for (size_t i = 0; i < toy.size(); ++i) model.Ready(i);
      });
    }
    Init({.backend = "shm"});
    return text;
  });
  EXPECT_THAT(texts[0], HasSubstr("destroyed"));
}

}  // namespace
}  // namespace rankrun::comm

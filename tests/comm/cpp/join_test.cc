#include <gmock/gmock.h>

#include <vector>

#include <rankrun/join.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using Inputs = std::vector<int>;  // of each rank

// Calls and results that one joinable has seen.
struct Seen {
  std::vector<int> sums;  // of each step's collective
  int main_hooks = 0;
  std::vector<bool> last;  // arguments of PostHook
  JoinArguments arguments;

  std::string Text() const {
    std::string text = "sums";
    for (int sum : sums) text += " " + std::to_string(sum);
    text += ", hooks " + std::to_string(main_hooks) + ", last";
    for (bool is_last : last) text += is_last ? " yes" : " no";
    return text;
  }
};

// Joinable whose step adds one of each rank that has an input.
class Counter : public Joinable {
 public:
  explicit Counter(ProcessGroup& group, bool notifies = true)
      : group_(group), notifies_(notifies) {}

  void Step() {
    if (notifies_) NotifyJoinContext(*this);
    seen.sums.push_back(Sum(1));
  }
  int Sum(int mine) {
    group_.AllReduce(Tensor(&mine, DType::kInt32, 1));
    return mine;
  }

  std::unique_ptr<JoinHook> MakeJoinHook(const JoinArguments& arguments) override {
    struct Hook : JoinHook {
      explicit Hook(Counter& of) : counter(of) {}
      void MainHook() override {
        counter.seen.main_hooks += 1;
        counter.Sum(0);
      }
      void PostHook(bool is_last_joiner) override { counter.seen.last.push_back(is_last_joiner); }
      Counter& counter;
    };
    seen.arguments = arguments;
    return std::make_unique<Hook>(*this);
  }
  ProcessGroup& join_process_group() const override { return group_; }

  Seen seen;

 private:
  ProcessGroup& group_;
  const bool notifies_;
};

struct JoinTest : testing::TestWithParam<const char*> {
  // Runs the steps of each rank in a Join with two joinables. Returns what each rank saw.
  std::vector<std::string> Train(const Inputs& inputs, const JoinOptions& options = {}) {
    return InWorld(static_cast<int>(inputs.size()), GetParam(), [&](ProcessGroup& world) {
      Counter model(world), optimizer(world, false);
      std::string error = ErrorOf(
          [&] {
            Join join({&model, &optimizer}, options);
            for (int i = 0; i < inputs[static_cast<size_t>(world.global_rank())]; ++i) {
              model.Step();
              optimizer.Step();
            }
            join.Finish();
          },
          std::chrono::hours(1));
      bool are_alike = model.seen.main_hooks == optimizer.seen.main_hooks &&
                       model.seen.sums == optimizer.seen.sums;
      std::string text = model.seen.Text() + (are_alike ? "" : ", the joinables differ");
      if (error != "no error") return text + ": " + error;
      // Without those of the joinables, the collectives of the Join itself.
      uint64_t collectives = world.Barrier().sequence() - 1;
      auto steps = static_cast<uint64_t>(model.seen.main_hooks) + model.seen.sums.size();
      return text + ", " + std::to_string(collectives - 2 * steps) + " of the Join";
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, JoinTest, testing::Values("shm", "tcp", "hierarchical", "gloo"),
                         NameOfBackend);

TEST_P(JoinTest, J1_OneRankHasOneInputMore) {
  EXPECT_THAT(Train({10, 11}),
              ElementsAre("sums 2 2 2 2 2 2 2 2 2 2, hooks 1, last no, 12 of the Join",
                          "sums 2 2 2 2 2 2 2 2 2 2 1, hooks 0, last yes, 12 of the Join"));
}

TEST_P(JoinTest, J2_EqualInputsHaveOnlyLastJoiners) {
  EXPECT_THAT(Train({5, 5}), Each("sums 2 2 2 2 2, hooks 0, last yes, 6 of the Join"));
}

TEST_P(JoinTest, J3_ARankWithoutInputs) {
  EXPECT_THAT(Train({0, 3}), ElementsAre("sums, hooks 3, last no, 4 of the Join",
                                         "sums 1 1 1, hooks 0, last yes, 4 of the Join"));
}

TEST_P(JoinTest, J4_TwoLastJoiners) {
  EXPECT_THAT(Train({2, 4, 4}), ElementsAre("sums 3 3, hooks 2, last no, 5 of the Join",
                                            "sums 3 3 2 2, hooks 0, last yes, 5 of the Join",
                                            "sums 3 3 2 2, hooks 0, last yes, 5 of the Join"));
}

TEST_P(JoinTest, J5_NoInputsAtAll) {
  EXPECT_THAT(Train({0, 0}), Each("sums, hooks 0, last yes, 1 of the Join"));
}

TEST_P(JoinTest, J6_TheFirstExhaustionEndsAllRanks) {
  auto texts = Train({10, 11}, {.throw_on_early_termination = true});
  EXPECT_THAT(texts[0], HasSubstr("DistError: Join: global rank 0 has no more inputs, and others "
                                  "have"));
  EXPECT_THAT(texts[1], HasSubstr("DistError: Join: at least one rank has no more inputs"));
  EXPECT_THAT(texts, Each(HasSubstr("sums 2 2 2 2 2 2 2 2 2 2, hooks 0, last:")));
}

TEST_P(JoinTest, J8_DisabledItDoesNothing) {
  auto texts = InWorld(2, GetParam(), [](ProcessGroup& world) {
    Counter model(world);
    Join join({&model}, {.enable = false});
    for (int i = 0; i < 10; ++i) {
      if (NotifyJoinContext(model)) return std::string("notified");
    }
    join.Finish();
    return model.seen.Text() + ", " + std::to_string(world.Barrier().sequence() - 1);
  });
  EXPECT_THAT(texts, Each("sums, hooks 0, last, 0"));
}

TEST_P(JoinTest, Jdraw_EqualInputsThrowNothing) {
  EXPECT_THAT(Train({3, 3}, {.throw_on_early_termination = true}),
              Each("sums 2 2 2, hooks 0, last yes, 7 of the Join"));
}

TEST_P(JoinTest, AnExceptionEndsTheOtherRanks) {
  auto texts = InWorld(3, GetParam(), [](ProcessGroup& world) {
    Counter model(world);
    return ErrorOf([&] {
      try {
        Join join({&model});
        for (int i = 0; i < 3; ++i) {
          if (world.global_rank() == 1 && i == 2) throw std::runtime_error("no disk");
          model.Step();
        }
        join.Finish();
      } catch (const std::runtime_error& error) {
        if (dynamic_cast<const DistError*>(&error) != nullptr) throw;
      }
    });
  });
  EXPECT_EQ(texts[1], "no error");
  EXPECT_THAT(texts[0], HasSubstr("the end of a Join before Finish"));
  EXPECT_THAT(texts[2], HasSubstr("the end of a Join before Finish"));
}

TEST_P(JoinTest, AHookThatThrowsEndsTheOtherRanks) {
  struct Bad : Counter {
    using Counter::Counter;
    std::unique_ptr<JoinHook> MakeJoinHook(const JoinArguments&) override {
      struct Hook : JoinHook {
        void MainHook() override { throw std::runtime_error("no disk"); }
      };
      return std::make_unique<Hook>();
    }
  };
  auto texts = InWorld(2, GetParam(), [](ProcessGroup& world) {
    Bad model(world);
    try {
      Join join({&model});
      for (int i = 0; i < 3 * world.global_rank(); ++i) model.Step();
      join.Finish();
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("no exception");
  });
  EXPECT_EQ(texts[0], "no disk");
  EXPECT_THAT(texts[1], HasSubstr("the end of a Join before Finish"));
}

TEST(JoinErrorTest, AJoinMayOutliveItsGroupAndItsJoinables) {
  auto texts = InWorld(1, "shm", [](ProcessGroup& world) {
    auto model = std::make_unique<Counter>(world);
    {
      Join finished({model.get()});
      finished.Finish();
      model.reset();
    }
    model = std::make_unique<Counter>(world);
    Join join({model.get()});
    Destroy();
    std::string text = ErrorOf([&] { join.Finish(); });
    Init({.backend = "shm"});
    return text;
  });
  EXPECT_THAT(texts, Each(HasSubstr("is destroyed")));
}

TEST(JoinErrorTest, ARankWithoutAHookEndsTheOthers) {
  struct Bad : Counter {
    using Counter::Counter;
    std::unique_ptr<JoinHook> MakeJoinHook(const JoinArguments& arguments) override {
      if (join_process_group().global_rank() == 0) throw std::runtime_error("no disk");
      return Counter::MakeJoinHook(arguments);
    }
  };
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Bad model(world);
    try {
      Join({&model}).Finish();
    } catch (const std::exception& error) {
      return std::string(error.what());
    }
    return std::string("no exception");
  });
  EXPECT_EQ(texts[0], "no disk");
  EXPECT_THAT(texts[1], HasSubstr("the end of a Join before Finish"));
}

// Returns how often rank 0 has warned while rank 1 made `steps` steps.
int WarningsAfter(int steps) {
  auto texts = InWorld(2, "shm", [&](ProcessGroup& world) {
    Counter model(world);
    testing::internal::CaptureStderr();
    Join join({&model});
    for (int i = 0; i < (world.global_rank() == 0 ? 0 : steps); ++i) model.Step();
    join.Finish();
    return testing::internal::GetCapturedStderr() + std::to_string(model.seen.main_hooks);
  });
  EXPECT_THAT(texts[0], testing::EndsWith(std::to_string(steps)));
  EXPECT_EQ(texts[1], "0");
  int warnings = 0;
  const std::string warning = "global rank 0 has at least 1000 inputs fewer";
  for (size_t at = 0; (at = texts[0].find(warning, at)) != std::string::npos; ++at) warnings += 1;
  return warnings;
}

TEST(JoinSkewTest, J7_AFarShorterRankWarnsOnce) {
  EXPECT_EQ(WarningsAfter(1000), 0);
  EXPECT_EQ(WarningsAfter(1001), 1);
  EXPECT_EQ(WarningsAfter(1002), 1);
}

TEST(JoinErrorTest, J9_DifferentGroupsAreRefused) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Counter model(world), optimizer(NewGroup({.description = "others"}));
    return ErrorOf([&] { Join join({&model, &optimizer}); });
  });
  EXPECT_THAT(texts, Each(HasSubstr("the joinables have different process groups")));
}

TEST(JoinErrorTest, WrongJoinablesAreRefused) {
  auto texts = InWorld(1, "shm", [](ProcessGroup& world) {
    Counter model(world);
    Join outer({&model});
    std::string text = ErrorOf([&] { Join join({}); }) + "\n";
    text += ErrorOf([&] { Join join({&model, nullptr}); }) + "\n";
    text += ErrorOf([&] { Join join({&model}); }) + "\n";
    Counter other(world);
    text += ErrorOf([&] { Join join({&other, &model}); }) + "\n";
    outer.Finish();
    text += ErrorOf([&] { Join({&model}).Finish(); });
    return text;
  });
  EXPECT_EQ(texts[0],
            "DistError: Join: there is no joinable: want at least one\n"
            "DistError: Join: a joinable is null\n"
            "DistError: Join: the first joinable is in another Join already\n"
            "DistError: Join: a joinable is in another Join already\n"
            "no error");
}

TEST(JoinErrorTest, HooksGetTheArguments) {
  auto texts = InWorld(1, "shm", [](ProcessGroup& world) {
    Counter model(world), optimizer(world);
    Join join({&model, &optimizer}, {.arguments = {{"divide_by_initial_world_size", true}}});
    bool all = std::any_cast<bool>(model.seen.arguments.at("divide_by_initial_world_size")) &&
               std::any_cast<bool>(optimizer.seen.arguments.at("divide_by_initial_world_size"));
    if (NotifyJoinContext(optimizer)) return std::string("the second joinable has notified");
    join.Finish();
    return std::string(all ? "yes" : "no");
  });
  EXPECT_THAT(texts, ElementsAre("yes"));
}

}  // namespace
}  // namespace rankrun::comm

// Collectives that must fail on all ranks, long before their time-out, with an
// error that names the calls of the ranks (negative_timing_test.cc shows how
// soon). The numbers are those of the list in docs/torch-distributed.md.

#include <dlpack/dlpack.h>
#include <gmock/gmock.h>
#include <signal.h>

#include <atomic>
#include <complex>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/dlpack.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct NegativeCallsTest : testing::TestWithParam<const char*> {
  using Act = std::function<void(ProcessGroup& world)>;

  void TearDown() override { unsetenv("RANKRUN_DEBUG"); }

  // Returns the error of each rank.
  static std::vector<std::string> Told(int world_size, const Act& act) {
    return InWorld(world_size, GetParam(),
                   [&](ProcessGroup& world) { return ErrorOf([&] { act(world); }); });
  }

  // Checks that rank 1's call fails for `reason`, that the other ranks' errors
  // contain it, and that the group stays usable on shm and breaks on the others.
  static void ExpectRefused(const char* operation, const std::string& reason, const Act& act) {
    auto told = InWorld(3, GetParam(), [&](ProcessGroup& world) {
      std::string text = ErrorOf([&] { act(world); });
      text += world.state() == GroupState::kOk ? "; sound" : "; broken";
      std::string after = ErrorOf([&] { world.Barrier(); });
      return after == "no error" ? text : text + "; then " + after;
    });
    bool breaks = GetParam() != std::string("shm");
    std::string state = breaks ? "; broken; then DistBackendError: Barrier #2" : "; sound";
    std::string said = breaks ? "; the process group is broken" : "";
    EXPECT_THAT(told[1], AllOf(StartsWith(std::string("DistError: ") + operation),
                               HasSubstr(reason), HasSubstr(said + state)));
    for (size_t r : {0U, 2U}) {
      std::string kind = breaks ? "DistBackendError: " : "DistError: ";
      const std::string refused = std::string("rank 1 refused ") + operation + " #1";
      auto fails = AllOf(StartsWith(kind + operation), HasSubstr(state), HasSubstr(refused),
                         HasSubstr(reason));
      bool sends_eagerly =
          GetParam() == std::string("tcp") || GetParam() == std::string("hierarchical");
      if (!sends_eagerly) {
        EXPECT_THAT(told[r], fails);
        continue;
      }
      // A rank that only sends small blocks may return before the refusal comes.
      EXPECT_THAT(told[r], AnyOf(fails, AllOf(StartsWith("no error; sound; then Dist"),
                                              HasSubstr(refused), HasSubstr(reason))));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, NegativeCallsTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(NegativeCallsTest, N07_DifferentCountsNameTheSizes) {
  auto told = Told(2, [](ProcessGroup& world) {
    std::vector<float> data(world.global_rank() == 0 ? 10 : 20);
    world.AllReduce(data);
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: AllReduce #1"),
                               HasSubstr("rank 0 called AllReduce #1 (10 x float32, sum)"),
                               HasSubstr("rank 1 called AllReduce #1 (20 x float32, sum)"))));
}

TEST_P(NegativeCallsTest, N08_DifferentDTypes) {
  auto told = Told(2, [](ProcessGroup& world) {
    std::vector<float> floats(10);
    std::vector<double> doubles(10);
    world.AllReduce(world.global_rank() == 0 ? Tensor(floats) : Tensor(doubles));
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: AllReduce #1"),
                               HasSubstr("rank 0 called AllReduce #1 (10 x float32, sum)"),
                               HasSubstr("rank 1 called AllReduce #1 (10 x float64, sum)"))));
}

TEST_P(NegativeCallsTest, N08_DifferentOperations) {
  auto told = Told(3, [](ProcessGroup& world) {
    std::vector<float> data(10);
    world.AllReduce(data, world.global_rank() == 1 ? ReduceOp::kMax : ReduceOp::kSum);
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: AllReduce #1"),
                               HasSubstr("ranks 0, 2 called AllReduce #1 (10 x float32, sum)"),
                               HasSubstr("rank 1 called AllReduce #1 (10 x float32, max)"))));
}

// With all calls compared; negative_complete_data_test.cc has the case without
// that.
TEST_P(NegativeCallsTest, N09_DifferentRoots) {
  setenv("RANKRUN_DEBUG", "DETAIL", 1);
  auto told = Told(3, [](ProcessGroup& world) {
    std::vector<float> data(10);
    world.Broadcast(data, GlobalRank{world.global_rank() == 0 ? 0 : 1});
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: Broadcast #1"),
                               HasSubstr("rank 0 called Broadcast #1 (10 x float32 from rank 0)"),
                               HasSubstr("ranks 1, 2 called Broadcast #1 (10 x float32 from rank "
                                         "1)"))));
}

TEST_P(NegativeCallsTest, N09_TwoRootsOfTwoRanks) {
  auto told = Told(2, [](ProcessGroup& world) {
    std::vector<float> data(10);
    world.Broadcast(data, GlobalRank{world.global_rank()});
    world.Barrier();
  });
  // On tcp both have sent their data without waiting.
  const bool fails_late = GetParam() == std::string("tcp");
  EXPECT_THAT(told,
              Each(AllOf(StartsWith(std::string("DistMismatchError: ") +
                                    (fails_late ? "Barrier #2" : "Broadcast #1")),
                         HasSubstr("rank 0 called Broadcast #1 (10 x float32 from rank 0)"),
                         HasSubstr("rank 1 called Broadcast #1 (10 x float32 from rank 1)"))));
}

TEST_P(NegativeCallsTest, N10_ABarrierAmongAllReduces) {
  auto told = Told(3, [](ProcessGroup& world) {
    std::vector<float> data(10);
    if (world.global_rank() == 2) {
      world.Barrier();
    } else {
      world.AllReduce(data);
    }
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: "),
                               HasSubstr("ranks 0, 1 called AllReduce #1 (10 x float32, sum)"),
                               HasSubstr("rank 2 called Barrier #1"))));
}

TEST_P(NegativeCallsTest, N11_ASkippedCollectiveBeforeAnother) {
  auto told = Told(3, [](ProcessGroup& world) {
    std::vector<float> data(10);
    if (world.global_rank() != 2) world.AllReduce(data);
    world.Barrier();
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: "),
                               HasSubstr("ranks 0, 1 called AllReduce #1 (10 x float32, sum)"),
                               HasSubstr("rank 2 called Barrier #1"))));
}

TEST_P(NegativeCallsTest, N11_ASkippedCollectiveAtTheEnd) {
  auto told = InWorld(3, GetParam(), [](ProcessGroup& world) {
    std::vector<float> data(10);
    world.AllReduce(data);
    std::string text;
    if (world.global_rank() != 2) {
      text = ErrorOf([&] { world.AllReduce(data, ReduceOp::kSum, milliseconds(300)); });
    }
    NewGroup({});  // synchronizes the ranks through the store
    return text;
  });
  for (size_t r : {0U, 1U}) {
    EXPECT_THAT(told[r], AllOf(StartsWith("DistTimeoutError: AllReduce #2"), HasSubstr("rank 2")));
  }
}

TEST_P(NegativeCallsTest, N12_SplitsThatDisagreeForOnePair) {
  auto told = Told(3, [](ProcessGroup& world) {
    bool wrong = world.global_rank() == 0;  // sends 3 rows to rank 1, which expects 2
    std::vector<float> input(wrong ? 7 : 6), output(6);
    std::vector<size_t> as_agreed{2, 2, 2}, other{2, 3, 2};
    world.AllToAllSingle(output, input, as_agreed, wrong ? other : as_agreed);
    world.Barrier();  // fails on a rank whose data was complete
  });
  EXPECT_THAT(told, Each(AllOf(StartsWith("DistMismatchError: "),
                               HasSubstr("rank 0 sends 12 bytes to rank 1, which"))));
}

TEST_P(NegativeCallsTest, N13_ImpossibleSplits) {
  auto exchange = [](const std::vector<size_t>& splits, size_t rows) {
    return [splits, rows](ProcessGroup& world) {
      std::vector<float> input(world.global_rank() == 1 ? rows : 6), output(6);
      bool wrong = world.global_rank() == 1;
      world.AllToAllSingle(output, input, {}, wrong ? splits : std::vector<size_t>());
    };
  };
  ExpectRefused("AllToAll", "input_splits has 2 numbers: want 3, one per rank",
                exchange({3, 3}, 6));
  ExpectRefused("AllToAll", "input_splits add up to 5: want 6, the rows of input",
                exchange({1, 2, 2}, 6));
  ExpectRefused("AllToAll",
                "input_splits add up to more than there can be: want 6, the rows of input",
                exchange({INT64_MAX, INT64_MAX, 2}, 6));
  ExpectRefused("AllToAll", "input_splits has -2: want 0 or more",
                exchange({4, static_cast<size_t>(-2), 4}, 6));
  ExpectRefused("AllToAll", "input has 7 rows: want a multiple of 3, the world size, or splits",
                exchange({}, 7));
}

TEST_P(NegativeCallsTest, ARefusedCallIsReportedWithItsCount) {
  auto told_of = [](const Act& act) { return Told(2, act)[0]; };
  auto input_of = [](const ProcessGroup& world) {
    return std::vector<float>(world.global_rank() == 1 ? 7 : 6);
  };
  EXPECT_THAT(told_of([&](ProcessGroup& world) {
                std::vector<float> input = input_of(world), output(6);
                world.AllToAllSingle(output, input);
              }),
              HasSubstr("rank 1 refused AllToAll #1 (7 x float32): input has 7 "));
  EXPECT_THAT(told_of([&](ProcessGroup& world) {
                std::vector<float> input = input_of(world), output(3);
                world.ReduceScatterFrom(output, input);
              }),
              HasSubstr("rank 1 refused ReduceScatter #1 (7 x float32, sum): input has 7 "));
  EXPECT_THAT(told_of([&](ProcessGroup& world) {
                std::vector<float> input = input_of(world), output(3);
                std::vector<ConstTensor> inputs{input};
                if (world.global_rank() == 0) inputs.push_back(input);
                world.ReduceScatter(world.global_rank() == 0 ? Tensor(input) : Tensor(output),
                                    inputs);
              }),
              HasSubstr("rank 1 refused ReduceScatter #1 (7 x float32, sum): inputs has 1 "));
  EXPECT_THAT(told_of([&](ProcessGroup& world) {
                std::vector<float> input = input_of(world), output(6);
                std::vector<ConstTensor> inputs{input};
                if (world.global_rank() == 0) inputs.push_back(input);
                world.AllToAll(std::vector<Tensor>{output, output}, inputs);
              }),
              HasSubstr("rank 1 refused AllToAll #1 (7 x float32): inputs has 1 "));
}

TEST_P(NegativeCallsTest, RowsOfNothingAreRefused) {
  ExpectRefused("AllToAll", "input has rows of 0 elements: want at least 1",
                [](ProcessGroup& world) {
                  std::vector<float> data(6), output(6);
                  Tensor input(data);
                  if (world.global_rank() == 1) input.row = 0;
                  world.AllToAllSingle(output, input);
                });
}

TEST_P(NegativeCallsTest, N14_AListWhereNoneBelongs) {
  ExpectRefused("Gather", "outputs is not empty: want that on the root, rank 0, only",
                [](ProcessGroup& world) {
                  std::vector<float> input(1), output(3);
                  std::vector<Tensor> outputs;
                  if (world.global_rank() < 2) {
                    for (float& each : output) outputs.emplace_back(&each, DType::kFloat32, 1);
                  }
                  world.Gather(outputs, input, GlobalRank{0});
                });
}

TEST_P(NegativeCallsTest, N14_NoListWhereOneBelongs) {
  ExpectRefused("Gather", "outputs has 0 tensors: want 3, one per rank", [](ProcessGroup& world) {
    std::vector<float> input(1);
    world.Gather({}, input, GlobalRank{1});
  });
  ExpectRefused("Scatter", "inputs has 0 tensors: want 3, one per rank", [](ProcessGroup& world) {
    std::vector<float> output(1);
    world.Scatter(output, {}, GlobalRank{1});
  });
}

// deaths_test.cc has more such cases.
TEST_P(NegativeCallsTest, N19_ARankThatIsKilled) {
  auto told = Told(4, [](ProcessGroup& world) {
    std::vector<float> data(100'000);
    world.AllReduce(data);
    if (world.global_rank() == 2) raise(SIGKILL);
    world.AllReduce(data);
  });
  EXPECT_EQ(told[2], "");
  for (size_t r : {0U, 1U, 3U}) {
    EXPECT_THAT(told[r], AllOf(StartsWith("DistNetworkError: AllReduce #2"), HasSubstr("rank 2")));
  }
}

TEST_P(NegativeCallsTest, N21_UseAfterATimeout) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<float> data(10);
    std::string text;
    if (world.global_rank() == 0) {
      text = ErrorOf([&] { world.AllReduce(data, ReduceOp::kSum, milliseconds(300)); });
      text += " | " + ErrorOf([&] { world.Barrier(); });
      text += world.state() == GroupState::kBroken ? " | broken" : " | sound";
    }
    NewGroup({});  // synchronizes the ranks through the store
    return text;
  });
  EXPECT_THAT(
      told[0],
      AllOf(StartsWith("DistTimeoutError: AllReduce #1"),
            HasSubstr(" | DistBackendError: Barrier #2 of the world process group, rank 0 "
                      "of 2: the process group is broken: AllReduce #1 (10 x float32, sum)"),
            HasSubstr("rank 1"), EndsWith(" | broken")));
}

TEST_P(NegativeCallsTest, N22_ACollectiveOnARankThatIsNoMember) {
  for (bool strict : {false, true}) {
    auto told = OnRanks(3, [&](int r) {
      setenv("RANKRUN_STRICT", strict ? "1" : "0", 1);
      Init({.backend = GetParam()});
      ProcessGroup& pair = NewGroup({.ranks = {0, 2}, .description = "pair"});
      std::vector<float> data{1.0F};
      std::string text = ErrorOf([&] { pair.AllReduce(data); });
      if (r == 1 && data[0] > 1) text += ", but it wrote";
      return text;
    });
    EXPECT_EQ(told[0], "no error");
    EXPECT_EQ(told[2], "no error");
    EXPECT_EQ(told[1], strict
                           ? "DistError: AllReduce of process group \"pair\": does nothing here, "
                             "as rank 1 is no member of it"
                           : "no error");
  }
}

TEST_P(NegativeCallsTest, N23_UnsupportedReductions) {
  ExpectRefused("AllReduce", ": does not support max on complex64 tensors",
                [](ProcessGroup& world) {
                  std::vector<std::complex<float>> data(4);
                  world.AllReduce(data, world.global_rank() == 1 ? ReduceOp::kMax : ReduceOp::kSum);
                });
  ExpectRefused("AllReduce", ": does not support avg on bool tensors", [](ProcessGroup& world) {
    bool data[4] = {};
    world.AllReduce(Tensor(std::span<bool>(data)),
                    world.global_rank() == 1 ? ReduceOp::kAvg : ReduceOp::kSum);
  });
  ExpectRefused("Reduce", ": does not support bit_and on float32 tensors", [](ProcessGroup& world) {
    std::vector<float> data(4);
    world.Reduce(data, GlobalRank{0},
                 world.global_rank() == 1 ? ReduceOp::kBitAnd : ReduceOp::kSum);
  });
}

// More refusals than call lines for late ranks.
TEST(NegativeCalls, ManyRefusedInARowLeaveTheGroupSound) {
  InSharedMemory<std::atomic<int>> refused;
  auto told = InWorld(2, "shm", [&](ProcessGroup& world) {
    std::vector<float> data(1);
    std::string text;
    while (world.global_rank() == 0 && *refused < 3) std::this_thread::yield();
    for (int i = 1; i <= 6; ++i) {
      Tensor tensor(data);
      if (world.global_rank() == 1) tensor.row = 0;
      text += ErrorOf([&] { world.AllReduce(tensor); }) + "\n";
      *refused += world.global_rank();
    }
    return text + ErrorOf([&] { world.Barrier(); });
  });
  for (int i = 1; i <= 6; ++i) {
    EXPECT_THAT(told[0], HasSubstr("rank 1 refused AllReduce #" + std::to_string(i) + " "));
  }
  EXPECT_THAT(told, Each(AllOf(Not(HasSubstr("broken")), EndsWith("\nno error"))));
}

TEST_P(NegativeCallsTest, ARefusedSumOfProductsLeavesTheTensorsAsTheyWere) {
  auto told = InWorld(2, GetParam(), [](ProcessGroup& world) {
    std::vector<float> data{3.0F};
    Tensor tensor(data);
    if (world.global_rank() == 1) tensor.row = 0;
    std::string text = ErrorOf([&] { world.AllReduce(tensor, ReduceOp::PremulSum(2)); });
    return text == "no error" ? text : std::to_string(data[0]);
  });
  EXPECT_THAT(told, Each(StartsWith("3.0")));
}

// A Tensor is always dense; other layouts can only come from other libraries.
TEST(NegativeCalls, N24_MemoryThatIsNotDense) {
  float memory[12] = {};
  int64_t shape[] = {4, 3};
  int64_t strides[] = {1, 4};
  DLTensor tensor{.data = memory,
                  .device = {.device_type = kDLCPU, .device_id = 0},
                  .ndim = 2,
                  .dtype = {.code = kDLFloat, .bits = 32, .lanes = 1},
                  .shape = shape,
                  .strides = strides,
                  .byte_offset = 0};
  EXPECT_THAT(ErrorOf([&] { FromDLTensor(&tensor); }),
              AllOf(StartsWith("DistError: "), HasSubstr("strides")));
}

}  // namespace
}  // namespace rankrun::comm

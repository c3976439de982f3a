// Calls on GPU memory that do not match or cannot be: the numbered cases of misuse, with
// the texts of the same cases on CPU memory (tests/comm/negative_calls_test).

#include <gmock/gmock.h>

#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// By each backend with which the ranks compare their calls.
struct GpuNegativeCallsTest : testing::TestWithParam<const char*> {
  // Returns the error of each rank's call.
  static std::vector<std::string> Told(int world_size,
                                       const std::function<Work(ProcessGroup&)>& call) {
    return OnGpus(
        world_size, [&](ProcessGroup& world) { return ErrorOfWork([&] { return call(world); }); },
        GetParam());
  }

  // Checks that rank 1's call fails for `reason`, which the other ranks get, too.
  static void ExpectRefused(const std::string& operation, const std::string& reason,
                            const std::function<Work(ProcessGroup&)>& call) {
    auto told = Told(3, call);
    EXPECT_THAT(told[1], AllOf(StartsWith("DistError: " + operation), HasSubstr(reason),
                               HasSubstr("the process group is broken")));
    for (size_t r : {0U, 2U}) {
      EXPECT_THAT(told[r],
                  AllOf(StartsWith("DistBackendError: " + operation),
                        HasSubstr("rank 1 refused " + operation + " #1"), HasSubstr(reason)));
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, GpuNegativeCallsTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(GpuNegativeCallsTest, N08_DifferentDTypes) {
  auto told = Told(2, [](ProcessGroup& world) {
    static OnGpu<float> floats(std::vector<float>(10));
    static OnGpu<double> doubles(std::vector<double>(10));
    return world.AllReduce(world.global_rank() == 0 ? Tensor(floats) : Tensor(doubles));
  });
  EXPECT_THAT(told,
              Each(AllOf(StartsWith("DistMismatchError: AllReduce #1"),
                         HasSubstr("rank 0 called AllReduce #1 (10 x float32 on cuda, sum)"),
                         HasSubstr("rank 1 called AllReduce #1 (10 x float64 on cuda, sum)"))));
}

TEST_P(GpuNegativeCallsTest, N08_DifferentOperations) {
  auto told = Told(3, [](ProcessGroup& world) {
    static OnGpu<float> data(std::vector<float>(10));
    return world.AllReduce(data, world.global_rank() == 1 ? ReduceOp::kMax : ReduceOp::kSum);
  });
  EXPECT_THAT(told,
              Each(AllOf(StartsWith("DistMismatchError: AllReduce #1"),
                         HasSubstr("ranks 0, 2 called AllReduce #1 (10 x float32 on cuda, sum)"),
                         HasSubstr("rank 1 called AllReduce #1 (10 x float32 on cuda, max)"))));
}

TEST_P(GpuNegativeCallsTest, N09_DifferentRoots) {
  auto told = Told(3, [](ProcessGroup& world) {
    static OnGpu<float> data(std::vector<float>(10));
    return world.Broadcast(data, GlobalRank{world.global_rank() == 0 ? 0 : 1});
  });
  EXPECT_THAT(
      told,
      Each(AllOf(StartsWith("DistMismatchError: Broadcast #1"),
                 HasSubstr("rank 0 called Broadcast #1 (10 x float32 on cuda from rank 0)"),
                 HasSubstr("ranks 1, 2 called Broadcast #1 (10 x float32 on cuda from rank 1)"))));
}

TEST_P(GpuNegativeCallsTest, N10_ABarrierAmongAllReduces) {
  auto told = Told(3, [](ProcessGroup& world) {
    static OnGpu<float> data(std::vector<float>(10));
    return world.global_rank() == 2 ? world.BarrierOn({.type = DeviceType::kCuda})
                                    : world.AllReduce(data);
  });
  EXPECT_THAT(told,
              Each(AllOf(StartsWith("DistMismatchError: "),
                         HasSubstr("ranks 0, 1 called AllReduce #1 (10 x float32 on cuda, sum)"),
                         HasSubstr("rank 2 called Barrier #1 on cuda"))));
}

TEST_P(GpuNegativeCallsTest, N11_ASkippedCollectiveBeforeAnother) {
  auto told = Told(3, [](ProcessGroup& world) {
    static OnGpu<float> data(std::vector<float>(10));
    if (world.global_rank() != 2) return world.AllReduce(data);
    return world.Barrier();
  });
  EXPECT_THAT(told,
              Each(AllOf(StartsWith("DistMismatchError: "),
                         HasSubstr("ranks 0, 1 called AllReduce #1 (10 x float32 on cuda, sum)"),
                         HasSubstr("rank 2 called Barrier #1"))));
}

TEST_P(GpuNegativeCallsTest, N12_SplitsThatDisagreeForOnePair) {
  auto told = Told(3, [](ProcessGroup& world) {
    bool wrong = world.global_rank() == 0;  // sends 3 rows to rank 1, which expects 2
    static OnGpu<float> input(std::vector<float>(7)), output(std::vector<float>(6));
    std::vector<size_t> as_agreed{2, 2, 2}, other{2, 3, 2};
    Work work = world.AllToAllSingle(output, input.Part(0, wrong ? 7 : 6), as_agreed,
                                     wrong ? other : as_agreed);
    // A rank whose data is complete fails in its next call.
    return EndOf(work) == "no error" ? world.Barrier() : work;
  });
  EXPECT_THAT(told, Each(HasSubstr("rank 0 sends 3 elements, and rank 1 has room for 2")));
  for (size_t r : {0U, 1U}) EXPECT_THAT(told[r], StartsWith("DistMismatchError: "));
}

TEST_P(GpuNegativeCallsTest, N13_ImpossibleSplits) {
  auto exchange = [](const std::vector<size_t>& splits, size_t rows) {
    return [splits, rows](ProcessGroup& world) {
      static OnGpu<float> input(std::vector<float>(7)), output(std::vector<float>(6));
      bool wrong = world.global_rank() == 1;
      return world.AllToAllSingle(output, input.Part(0, wrong ? rows : 6), {},
                                  wrong ? splits : std::vector<size_t>());
    };
  };
  ExpectRefused("AllToAll", "input_splits has 2 numbers: want 3, one per rank",
                exchange({3, 3}, 6));
  ExpectRefused("AllToAll", "input has 7 rows: want a multiple of 3, the world size, or splits",
                exchange({}, 7));
}

TEST_P(GpuNegativeCallsTest, N14_ListsWhereTheyDoNotBelong) {
  ExpectRefused("Gather", "outputs is not empty: want that on the root, rank 0, only",
                [](ProcessGroup& world) {
                  static OnGpu<float> input({1}), output({0, 0, 0});
                  std::vector<Tensor> outputs;
                  for (size_t r = 0; r < 3; ++r) outputs.push_back(output.Part(r, 1));
                  if (world.global_rank() == 2) outputs.clear();
                  return world.Gather(outputs, input, GlobalRank{0});
                });
  ExpectRefused("Scatter", "inputs has 0 tensors: want 3, one per rank", [](ProcessGroup& world) {
    static OnGpu<float> output({0});
    return world.Scatter(output, {}, GlobalRank{1});
  });
}

TEST_P(GpuNegativeCallsTest, N21_UseAfterATimeout) {
  auto told = OnGpus(
      2,
      [](ProcessGroup& world) {
        OnGpu<float> data(std::vector<float>(10));
        std::string text;
        if (world.global_rank() == 0) {
          text =
              ErrorOfWork([&] { return world.AllReduce(data, ReduceOp::kSum, milliseconds(300)); });
          text += " | " + ErrorOfWork([&] { return world.AllReduce(data); });
          text += world.state() == GroupState::kBroken ? " | broken" : " | sound";
        }
        NewGroup({.backend = "shm"});  // synchronizes the ranks through the store
        return text;
      },
      GetParam());
  EXPECT_THAT(told[0],
              AllOf(StartsWith("DistTimeoutError: AllReduce #1"),
                    HasSubstr(" | DistBackendError: AllReduce #2"),
                    HasSubstr("the process group is broken: AllReduce #1 (10 x float32 on cuda"),
                    HasSubstr("rank 1"), EndsWith(" | broken")));
}

TEST_P(GpuNegativeCallsTest, N22_ACollectiveOnARankThatIsNoMember) {
  auto told = OnGpus(
      3,
      [](ProcessGroup& world) {
        ProcessGroup& pair = NewGroup({.ranks = {0, 2}, .description = "pair"});
        OnGpu<float> data({1});
        std::string error = ErrorOfWork([&] { return pair.AllReduce(data); });
        return error + ", " + std::to_string(data.Read()[0] > 1) +
               (world.state() == GroupState::kOk ? "" : ", broken");
      },
      GetParam());
  EXPECT_THAT(told, testing::ElementsAre("no error, 1", "no error, 0", "no error, 1"));
}

TEST_P(GpuNegativeCallsTest, N27_DestroyAndInitTwentyTimes) {
  auto told = OnRanks(2, [](int rank) {
    SetHostFor(GetParam(), rank);
    int sum = 0;
    for (int i = 0; i < 20; ++i) {
      ProcessGroup& world = Init(WithGpus(GetParam()));
      OnGpu<int32_t> data({1});
      world.AllReduce(data);
      sum += data.Read()[0];
      Destroy();
    }
    return std::to_string(sum);
  });
  EXPECT_THAT(told, Each("40"));
}

// Messages: N15 to N17 are in messages_test.
TEST_P(GpuNegativeCallsTest, N18_TwoRanksThatReceiveFromEachOther) {
  auto told = Told(2, [](ProcessGroup& world) {
    static OnGpu<float> data({1});
    world.Recv(data, GlobalRank{1 - world.global_rank()}, 0, milliseconds(300));
    return Work();
  });
  EXPECT_THAT(told, Each(AllOf(testing::HasSubstr("Recv (1 x float32 on cuda from rank"),
                               testing::AnyOf(HasSubstr("no matching Send after 300 ms"),
                                              HasSubstr("the process group is broken"),
                                              HasSubstr("first to fail")))));
}

}  // namespace
}  // namespace rankrun::comm

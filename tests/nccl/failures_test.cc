// Calls between GPUs that differ, are late, or fail. NCCL alone would wait for ever.

#include <gmock/gmock.h>
#include <nccl.h>

#include <rankrun/gpu.h>
#include <rankrun/objects.h>

#include "tests/nccl/fake_cuda/trace.h"
#include "tests/nccl/gated_stream.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// By each backend with which the ranks compare their calls.
struct GpuBackendsTest : testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, GpuBackendsTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(GpuBackendsTest, CallsThatDifferAreListed) {
  auto texts = OnGpus(
      2,
      [](ProcessGroup& world) {
        OnGpu<int32_t> values(std::vector<int32_t>(4 + static_cast<size_t>(world.group_rank())));
        return ErrorOfWork([&] { return world.AllReduce(values); });
      },
      GetParam());
  EXPECT_THAT(texts, Each(AllOf(StartsWith("DistMismatchError"),
                                HasSubstr("AllReduce #1 (4 x int32 on cuda, sum)"),
                                HasSubstr("AllReduce #1 (5 x int32 on cuda, sum)"))));
}

TEST_P(GpuBackendsTest, OneCallOnAGpuAndOneOnTheCpuDiffer) {
  auto texts = OnGpus(
      2,
      [](ProcessGroup& world) {
        OnGpu<int32_t> on_gpu({1});
        std::vector<int32_t> on_cpu{1};
        bool first = world.group_rank() == 0;
        return ErrorOfWork(
            [&] { return world.AllReduce(first ? Tensor(on_gpu) : Tensor(on_cpu)); });
      },
      GetParam());
  EXPECT_THAT(texts,
              Each(AllOf(StartsWith("DistMismatchError"), HasSubstr("(1 x int32 on cuda, sum)"),
                         HasSubstr("(1 x int32, sum)"))));
}

TEST_P(GpuBackendsTest, PartsOfAnotherSizeAreAMismatch) {
  auto texts = OnGpus(
      2,
      [](ProcessGroup& world) {
        size_t mine = world.group_rank() == 0 ? 2 : 3;
        OnGpu<int32_t> input{std::vector<int32_t>(mine)};
        OnGpu<int32_t> zero{std::vector<int32_t>(2)}, one{std::vector<int32_t>(3)};
        // Rank 0 expects two elements of rank 1, which sends three.
        std::vector<Tensor> outputs{zero, one};
        if (world.group_rank() == 0) outputs[1].count = 2;
        return ErrorOfWork([&] { return world.AllGather(outputs, input); });
      },
      GetParam());
  EXPECT_THAT(texts, Each(HasSubstr("rank 1 sends 3 elements, and rank 0 has room for 2")));
}

TEST_P(GpuBackendsTest, ARefusalIsToldToTheOthers) {
  auto texts = OnGpus(
      2,
      [](ProcessGroup& world) {
        OnGpu<int32_t> values({1});
        ReduceOp op = world.group_rank() == 1 ? ReduceOp::kBitAnd : ReduceOp::kSum;
        return ErrorOfWork([&] { return world.AllReduce(values, op); });
      },
      GetParam());
  const char* why = "NCCL has no operator";
  EXPECT_THAT(texts[0], AllOf(StartsWith("DistBackendError"), HasSubstr("rank 1 refused AllReduce"),
                              HasSubstr(why)));
  EXPECT_THAT(texts[1], AllOf(StartsWith("DistError"), HasSubstr(why)));
}

TEST(GpuFailuresTest, ARankThatDoesNotCallIsNamedAfterTheTimeout) {
  InSharedMemory<std::atomic<int>> told;
  auto texts = OnGpus(3, [&](ProcessGroup& world) {
    OnGpu<int32_t> values({1});
    world.AllReduce(values);
    std::string text;
    if (world.group_rank() != 1) {
      text = ErrorOfWork([&] {
        return world.AllReduce(values, ReduceOp::kSum, CallOptions{.timeout = milliseconds(300)});
      });
      *told += 1;
    }
    while (told->load() < 2) std::this_thread::yield();
    return text;
  });
  EXPECT_THAT(texts[0], AllOf(StartsWith("DistTimeoutError"), HasSubstr("rank 1")));
  EXPECT_THAT(texts[2], AllOf(StartsWith("DistTimeoutError"), HasSubstr("rank 1")));
}

TEST(GpuFailuresTest, ADeviceThatDoesNotComplete) {
  InSharedMemory<std::atomic<bool>> has_called;
  auto texts = OnGpus(2, [&](ProcessGroup& world) {
    OnGpu<int32_t> values({1});
    world.AllReduce(values);
    values.Read();
    if (world.group_rank() == 1) {  // its kernel before the call never ends
      GatedStream stuck;
      StreamScope scope(stuck.get());
      Work work = world.AllReduce(values, ReduceOp::kSum, kAsync);
      has_called->store(true);
      std::string text = EndOf(work);
      stuck.Open();
      return text;
    }
    while (!has_called->load()) std::this_thread::yield();
    return ErrorOfWork([&] {
      return world.AllReduce(values, ReduceOp::kSum, CallOptions{.timeout = milliseconds(300)});
    });
  });
  EXPECT_THAT(texts[0], AllOf(StartsWith("DistTimeoutError"), HasSubstr("all ranks have made the "
                                                                        "call")));
  EXPECT_THAT(texts[1], HasSubstr("rank 0"));
}

// NCCL's group call goes on in the background until the abort.
TEST(GpuFailuresTest, ALaunchThatDoesNotEndHasTheTimeout) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> values({1}), outputs({0, 0});
    world.AllReduce(values);
    values.Read();
    fake_stall_next("ncclGroupEnd");
    // Their parts are apart, so that the call needs memory of the plug-in.
    std::vector<Tensor> parts{outputs.Part(1, 1), outputs.Part(0, 1)};
    std::string text = ErrorOfWork(
        [&] { return world.AllGather(parts, values, CallOptions{.timeout = milliseconds(300)}); });
    return text + (world.state() == GroupState::kBroken ? "" : "; not broken");
  });
  EXPECT_THAT(texts, testing::Contains(
                         AllOf(StartsWith("DistTimeoutError"), HasSubstr("did not end in time"))));
  EXPECT_THAT(texts, Each(testing::Not(HasSubstr("not broken"))));
}

TEST_P(GpuBackendsTest, AnErrorOfNcclBreaksTheGroupOnAllRanks) {
  auto texts = OnGpus(
      2,
      [](ProcessGroup& world) {
        OnGpu<int32_t> values({1});
        world.AllReduce(values);
        values.Read();
        if (world.group_rank() == 1) fake_fail_next("ncclAllReduce", ncclInternalError);
        std::string text = ErrorOfWork([&] { return world.AllReduce(values); });
        return text + (world.state() == GroupState::kBroken ? "" : "; not broken");
      },
      GetParam());
  EXPECT_THAT(texts[1], AllOf(StartsWith("DistBackendError"), HasSubstr("NCCL: internal error"),
                              testing::Not(HasSubstr("not broken"))));
  EXPECT_THAT(texts[0], AllOf(HasSubstr("rank 1"), HasSubstr("NCCL: internal error"),
                              testing::Not(HasSubstr("not broken"))));
}

TEST_P(GpuBackendsTest, WithoutAnIdTheOthersLearnWhy) {
  auto texts = OnGpus(
      2,
      [](ProcessGroup& world) {
        OnGpu<int32_t> values({1});
        if (world.group_rank() == 0) fake_fail_next("ncclGetUniqueId", ncclSystemError);
        return ErrorOfWork([&] { return world.AllReduce(values); });
      },
      GetParam());
  EXPECT_THAT(texts, Each(AllOf(StartsWith("DistBackendError"), HasSubstr("ncclGetUniqueId"))));
}

TEST(GpuFailuresTest, AGroupUsesOneGpuOfEachRank) {
  auto texts = OnGpus(1, [](ProcessGroup& world) {
    OnGpu<int32_t> zero({1}, 0), one({1}, 1);
    world.AllReduce(one);
    Tensor absent = one;
    absent.device.index = 8;
    return ErrorOfWork([&] { return world.AllReduce(absent); });
  });
  EXPECT_THAT(texts, ElementsAre(HasSubstr("the call is for cuda:8: want cuda:0..7")));
  texts = OnGpus(1, [](ProcessGroup& world) {
    OnGpu<int32_t> zero({1}, 0), one({1}, 1);
    world.AllReduce(one);
    return ErrorOfWork([&] { return world.AllReduce(zero); });
  });
  EXPECT_THAT(texts, ElementsAre(HasSubstr("the call is for cuda:0: want cuda:1")));
}

TEST(GpuFailuresTest, TensorsOfACallAreOnOneDevice) {
  auto texts = OnGpus(1, [](ProcessGroup& world) {
    OnGpu<int32_t> on_gpu({1});
    std::vector<int32_t> on_cpu{1};
    return ErrorOfWork([&] { return world.AllGatherInto(on_gpu, on_cpu); });
  });
  EXPECT_THAT(texts, ElementsAre(HasSubstr("output is on cuda:0: want cpu, as the input")));
}

TEST(GpuFailuresTest, AGroupForTheCpuRefusesTensorsOnGpus) {
  auto texts = OnRanks(2, [](int) {
    ProcessGroup& world = Init({.backend = "shm"});
    OnGpu<int32_t> values({1});
    std::string text = ErrorOfWork([&] { return world.AllReduce(values); });
    Destroy();
    return text;
  });
  EXPECT_THAT(texts, Each(HasSubstr("the call is for cuda:0, but the group's backend is \"shm\"")));
}

}  // namespace
}  // namespace rankrun::comm

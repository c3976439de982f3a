// The way into a world with GPUs.

#include <gmock/gmock.h>

#include "tests/nccl/fake_cuda/trace.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

TEST(GpuStartTest, WithoutAGpuInitSaysSo) {
  auto texts = OnRanks(2, [](int rank) {
    if (rank == 1) setenv("FAKE_CUDA_GPUS", "0", 1);
    bool available = BackendAvailable("nccl");
    return std::string(available ? "available, " : "not available, ") +
           ErrorOf([&] { Init(WithGpus()); });
  });
  const char* why =
      "backend nccl: this process has no GPU that CUDA can use: cudaGetDeviceCount: "
      "no CUDA-capable device is detected";
  EXPECT_THAT(texts[0],
              AllOf(StartsWith("available, DistError"), HasSubstr("rank 1"), HasSubstr(why)));
  EXPECT_THAT(texts[1], AllOf(StartsWith("not available, DistError"), HasSubstr(why)));
}

TEST(GpuStartTest, ADeviceConnectsTheRanksInInit) {
  auto texts = OnRanks(2, [](int) {
    InitOptions options = WithGpus();
    options.device = {.type = DeviceType::kCuda, .index = 1};
    ProcessGroup& world = Init(options);
    ProcessGroup& group = NewGroup({.ranks = {0, 1}});
    std::string trace = fake_trace_take();
    bool connected = trace.find("init rank") < trace.rfind("init rank");
    OnGpu<int32_t> values({1}, 1);
    group.AllReduce(values);
    std::string text = connected ? "" : "not connected: " + trace;
    if (std::string(fake_trace_take()).find("init rank") != std::string::npos) text += "late";
    text += std::to_string(values.Read()[0]) + ", " + std::to_string(world.Barrier().sequence());
    Destroy();
    return text;
  });
  EXPECT_THAT(texts, Each("2, 2"));
}

TEST(GpuStartTest, ADeviceThatOneRankLacksIsAnErrorOfAll) {
  auto texts = OnRanks(2, [](int rank) {
    InitOptions options = WithGpus();
    options.device = {.type = DeviceType::kCuda, .index = rank == 0 ? 0 : 8};
    std::string text = ErrorOf([&] { Init(options); });
    return text + (Initialized() ? ", with a world" : "");
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("the call is for cuda:8: want cuda:0..7"),
                                testing::Not(HasSubstr("with a world")))));
}

TEST(GpuStartTest, ADeviceNeedsABackendForIt) {
  auto texts = OnRanks(1, [](int) {
    InitOptions options{.backend = "shm"};
    options.device = Device{.type = DeviceType::kCuda};
    std::string text = ErrorOf([&] { Init(options); });
    options.device = Device{};
    return text + "; " + ErrorOf([&] { Init(options); });
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("device is a GPU, and the backend is \"shm\": want one"),
                              HasSubstr("device is cpu: want a GPU")));
}

TEST(GpuStartTest, TheNameNcclLeavesTheCpuToAuto) {
  auto texts = OnRanks(2, [](int) {
    ProcessGroup& world = Init({.backend = "NCCL"});
    std::string text = world.backend() + ", " + SumOf(world);
    Destroy();
    return text;
  });
  EXPECT_THAT(texts, Each("cpu:shm,cuda:nccl, 2 of 2"));
}

TEST(GpuStartTest, ABackendHasItsPlaceInAMap) {
  auto refused = [](const char* backend) {
    return OnRanks(1, [=](int) { return ErrorOf([&] { Init({.backend = backend}); }); })[0];
  };
  EXPECT_THAT(refused("cpu:nccl"), HasSubstr("the backend nccl is for cuda: want cuda:nccl"));
  EXPECT_THAT(refused("cuda:shm"), HasSubstr("the backend shm is for cpu: want cpu:shm"));
  EXPECT_THAT(refused("cuda:gloo"), HasSubstr("the backend gloo is for cpu: want cpu:gloo"));
}

}  // namespace
}  // namespace rankrun::comm

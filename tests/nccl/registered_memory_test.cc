#include <gmock/gmock.h>

#include <memory>

#include <rankrun/c/collectives.h>
#include <rankrun/gpu.h>

#include "tests/nccl/fake_cuda/trace.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

InitOptions ConnectedAtOnce() {
  InitOptions options = WithGpus();
  options.device = Device{.type = DeviceType::kCuda};
  return options;
}

TEST(RegisteredMemoryTest, IsThatOfNcclUntilItsEnd) {
  auto texts = OnRanks(2, [](int) {
    ProcessGroup& world = Init(ConnectedAtOnce());
    OnGpu<int32_t> values({1, 2, 3});
    fake_trace_take();
    auto registered = std::make_unique<RegisteredMemory>(world, values);
    world.AllReduce(values);
    values.Read();
    std::string text = fake_trace_take();
    registered.reset();
    text += "end: " + std::string(fake_trace_take());
    Destroy();
    return text;
  });
  EXPECT_THAT(texts,
              Each(AllOf(StartsWith("register 12 bytes\n"), HasSubstr("ncclAllReduce 3 x int32"),
                         HasSubstr("end: deregister\n"))));
}

TEST(RegisteredMemoryTest, MayOutliveItsGroup) {
  auto texts = OnRanks(2, [](int) {
    ProcessGroup& world = Init(ConnectedAtOnce());
    OnGpu<int32_t> values({1});
    auto registered = std::make_unique<RegisteredMemory>(world, values);
    Destroy();
    fake_trace_take();
    registered.reset();
    return std::string(fake_trace_take());
  });
  EXPECT_THAT(texts, Each(Not(HasSubstr("deregister"))));
}

TEST(RegisteredMemoryTest, InC) {
  auto texts = OnRanks(1, [](int) {
    Init(ConnectedAtOnce());
    OnGpu<int32_t> values({1, 2});
    Tensor memory = values;
    rankrun_tensor tensor{.data = memory.data,
                          .count = 2,
                          .row = 0,
                          .device_index = 0,
                          .dtype = RANKRUN_INT32,
                          .device_type = RANKRUN_CUDA,
                          .reserved = 0};
    fake_trace_take();
    rankrun_registered_memory* registered = rankrun_register_memory(nullptr, &tensor);
    if (registered == nullptr) return std::string(rankrun_last_error());
    rankrun_registered_memory_release(registered);
    std::string text = fake_trace_take();
    if (rankrun_register_memory(nullptr, nullptr) == nullptr) text += rankrun_last_error();
    rankrun_registered_memory_release(nullptr);
    Destroy();
    return text;
  });
  EXPECT_THAT(texts, Each(AllOf(StartsWith("register 8 bytes\nderegister\n"),
                                HasSubstr("memory is NULL"))));
}

TEST(RegisteredMemoryTest, OtherMemoryIsRefused) {
  auto texts = OnRanks(1, [](int) {
    ProcessGroup& world = Init(WithGpus());
    OnGpu<int32_t> values({1});
    int32_t on_cpu = 0;
    auto refusal = [&](const Tensor& memory) {
      return ErrorOf([&] { RegisteredMemory registered(world, memory); }) + "\n";
    };
    std::string text = refusal(values);
    text += refusal({&on_cpu, DType::kInt32, 1});
    text += refusal(values.Part(0, 0));
    world.BarrierOn({.type = DeviceType::kCuda});
    fake_fail_next("ncclCommRegister", 3);
    text += refusal(values);
    text += refusal(values);
    Destroy();
    return text;
  });
  const std::string beginning = "RegisteredMemory of the world process group, rank 0 of 1: ";
  EXPECT_THAT(
      texts,
      Each(AllOf(HasSubstr(beginning + "NCCL is not connected: want InitOptions::device, "
                                       "or a collective on a GPU before\n"),
                 HasSubstr(beginning + "the memory is not on a GPU\n"),
                 HasSubstr(beginning + "the memory is empty\n"),
                 HasSubstr(beginning + "ncclCommRegister: "), testing::EndsWith("no error\n"))));
}

TEST(RegisteredMemoryTest, AGroupWithoutGpusRefusesIt) {
  auto texts = OnRanks(1, [](int) {
    ProcessGroup& world = Init({.timeout = std::chrono::seconds(60), .backend = "shm"});
    OnGpu<int32_t> values({1});
    std::string text = ErrorOf([&] { RegisteredMemory registered(world, values); });
    Destroy();
    return text;
  });
  EXPECT_THAT(texts, Each(HasSubstr("the group's backend is \"shm\"")));
}

}  // namespace
}  // namespace rankrun::comm

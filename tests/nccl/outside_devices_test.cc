// NCCL as a backend that is written outside of rankrun: rankrun/device_backend.h.

#include "comm/world/outside_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "comm/world/backend_table.h"
#include "tests/comm/memory_store.h"
#include "tests/nccl/gpu.h"
#include "tests/nccl/outside_nccl.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// As OnGpus, with the backend "outside".
std::vector<std::string> OnOutsideGpus(int ranks,
                                       const std::function<std::string(ProcessGroup&)>& body) {
  return OnRanks(ranks, [&](int) {
    RegisterNcclFromOutside();
    ProcessGroup& world =
        Init({.timeout = std::chrono::seconds(60), .backend = "cpu:shm,cuda:outside"});
    std::string text = body(world);
    Destroy();
    return text + (testing::Test::HasFailure() ? "; an expectation has failed" : "");
  });
}

TEST(OutsideDevicesTest, EveryCollectiveHasItsBlocks) {
  auto texts = OnOutsideGpus(3, [](ProcessGroup& world) {
    const int32_t rank = world.group_rank();
    OnGpu<int32_t> one({rank}), three({rank, 10 * rank, 100 * rank}), all({0, 0, 0});
    auto parts = [](const OnGpu<int32_t>& of) {
      return std::vector<Tensor>{of.Part(0, 1), of.Part(1, 1), of.Part(2, 1)};
    };
    auto inputs = [&](const OnGpu<int32_t>& of) {
      auto tensors = parts(of);
      return std::vector<ConstTensor>(tensors.begin(), tensors.end());
    };
    std::string text;
    auto add = [&](const OnGpu<int32_t>& values) {
      for (int32_t value : values.Read()) text += std::to_string(value) + " ";
    };
    world.AllGather(parts(all), one), add(all);
    world.AllToAll(parts(all), inputs(three)), add(all);
    world.ReduceScatter(one, inputs(three)), add(one);
    world.Broadcast(three, GlobalRank{1}), add(three);
    world.Reduce(three, GlobalRank{2}, ReduceOp::kMax), add(three);
    world.AllReduce(three), add(three);
    world.Scatter(one, rank == 1 ? inputs(three) : std::vector<ConstTensor>(), GlobalRank{1}),
        add(one);
    world.Gather(rank == 0 ? parts(all) : std::vector<Tensor>(), one, GlobalRank{0}), add(all);
    world.Barrier();
    return text;
  });
  EXPECT_THAT(texts, ElementsAre("0 1 2 0 1 2 3 1 10 100 1 10 100 3 30 300 3 3 30 300 ",
                                 "0 1 2 0 10 20 30 1 10 100 1 10 100 3 30 300 30 0 10 20 ",
                                 "0 1 2 0 100 200 300 1 10 100 1 10 100 3 30 300 300 0 100 200 "));
}

TEST(OutsideDevicesTest, MessagesArrive) {
  auto texts = OnOutsideGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> values({7, 8}), received({0, 0});
    const GlobalRank other{1 - world.group_rank()};
    Work sent = world.ISend(values, other, 3);
    world.Recv(received, other, 3);
    sent.Wait();
    return testing::PrintToString(received.Read());
  });
  EXPECT_THAT(texts, Each("{ 7, 8 }"));
}

TEST(OutsideDevicesTest, ARefusalIsThatOfTheBackendOnAllRanks) {
  auto texts = OnOutsideGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> values({1});
    return ErrorOfWork([&] { return world.AllReduce(values, ReduceOp::kBitXor); });
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("AllReduce"), HasSubstr("NCCL "))));
}

TEST(OutsideDevicesTest, AMismatchIsAnErrorOnAllRanks) {
  auto texts = OnOutsideGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> values({1, 2});
    return ErrorOfWork(
        [&] { return world.AllReduce(values.Part(0, world.group_rank() == 0 ? 1 : 2)); });
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("1 x int32"), HasSubstr("2 x int32"))));
}

TEST(OutsideDevicesTest, ADeathEndsTheCallOfTheOthers) {
  auto texts = OnOutsideGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> values({1});
    world.AllReduce(values);
    values.Read();
    if (world.group_rank() == 1) raise(SIGKILL);
    return ErrorOfWork([&] { return world.AllReduce(values, ReduceOp::kSum, kAsync); });
  });
  EXPECT_THAT(texts[0], HasSubstr("rank 1"));
}

struct BadOutsideDevicesTest : testing::Test {
  rankrun_device_backend good = {
      .size = sizeof(rankrun_device_backend),
      .version = RANKRUN_DEVICE_BACKEND_VERSION,
      .name = "good",
      .context = nullptr,
      .find_devices =
          [](void*, char* reason, size_t size) {
            snprintf(reason, size, "the driver is too old");
            return RANKRUN_BACKEND;
          },
      .create = [](void*, const rankrun_device_group*, void**, char*,
                   size_t) { return RANKRUN_OK; },
      .destroy = [](void*) {},
      .check = [](void*, const rankrun_device_call*, char*, size_t) { return RANKRUN_OK; },
      .enqueue = [](void*, const rankrun_device_call*, void**, char*,
                    size_t) { return RANKRUN_OK; },
      .start = nullptr,
      .advance = nullptr,
      .test = [](void*, int*, char*, size_t) { return RANKRUN_OK; },
      .wait_in = [](void*, void*, char*, size_t) { return RANKRUN_OK; },
      .release = [](void*) {},
      .abort = [](void*) {},
  };

  static std::string ErrorIn(const rankrun_device_backend& backend) {
    auto ok = CheckOutsideDevices(backend);
    return ok ? "no error" : ok.error().message;
  }
};

TEST_F(BadOutsideDevicesTest, AreRefused) {
  EXPECT_EQ(ErrorIn(good), "no error");
  rankrun_device_backend bad = good;
  bad.version = 7;
  EXPECT_EQ(ErrorIn(bad), "the backend is of version 7: want 1");
  bad = good;
  bad.size = 8;
  EXPECT_EQ(ErrorIn(bad), "the backend has the size 8: want sizeof(rankrun_device_backend), " +
                              std::to_string(sizeof bad));
  bad = good;
  bad.enqueue = nullptr;
  EXPECT_THAT(ErrorIn(bad), HasSubstr("the function enqueue of the backend is NULL"));
  bad = good;
  bad.advance = good.test;
  EXPECT_THAT(ErrorIn(bad), HasSubstr("the function start of the backend is NULL"));
}

TEST_F(BadOutsideDevicesTest, WithoutAGpuTheReasonIsTheBackends) {
  ASSERT_EQ(rankrun_register_device_backend(&good), RANKRUN_OK) << rankrun_last_error();
  auto creator = FindDeviceBackend("good", {});
  ASSERT_FALSE(creator);
  EXPECT_EQ(creator.error().message, "backend good: the driver is too old");
  EXPECT_FALSE(BackendAvailable("cpu:shm,cuda:good"));
  auto for_cpu = FindBackend("good", {});
  ASSERT_FALSE(for_cpu);
  EXPECT_THAT(for_cpu.error().message, HasSubstr("is for cuda"));
}

TEST_F(BadOutsideDevicesTest, ANameThatIsTakenIsRefused) {
  good.name = "taken";
  ASSERT_EQ(rankrun_register_device_backend(&good), RANKRUN_OK) << rankrun_last_error();
  for (const char* name : {"taken", "nccl", "shm"}) {
    good.name = name;
    EXPECT_EQ(rankrun_register_device_backend(&good), RANKRUN_INVALID);
    EXPECT_THAT(rankrun_last_error(), HasSubstr("is taken: want another one"));
  }
}

// Backend of one rank, whose works are over once the GPU, or an abort, has ended them.
struct Recorded {
  std::string calls;
  int done = 0;
  const rankrun_device_group* group = nullptr;
};

TEST_F(BadOutsideDevicesTest, AWorkThatAnAbortHasEndedIsNoSuccess) {
  static Recorded recorded;
  rankrun_device_backend recording = good;
  recording.find_devices = [](void*, char*, size_t) { return RANKRUN_OK; };
  recording.create = [](void*, const rankrun_device_group* group, void** state, char*, size_t) {
    recorded.group = group;
    *state = &recorded;
    return RANKRUN_OK;
  };
  recording.test = [](void*, int* done, char*, size_t) {
    *done = recorded.done;
    return RANKRUN_OK;
  };
  recording.abort = [](void*) { recorded.done = 1; };
  recording.release = [](void*) { recorded.calls += "release "; };
  recording.destroy = [](void*) { recorded.calls += "destroy "; };
  MemoryStore store(std::make_shared<MemoryKeys>());
  auto backend = (*CreatorOf(recording))(
      {.global_ranks = {0}, .group_rank = 0, .store = store, .key_prefix = "", .name = "g"});
  ASSERT_TRUE(backend) << backend.error().message;
  auto work = (*backend)->Enqueue({.operation = {.kind = Operation::Kind::kBarrier}});
  ASSERT_TRUE(work) << work.error().message;
  auto done = (*work)->Test();
  ASSERT_TRUE(done);
  EXPECT_FALSE(*done);
  EXPECT_EQ(recorded.group->is_cancelled(recorded.group), 0);
  (*backend)->Abort();
  EXPECT_EQ(recorded.group->is_cancelled(recorded.group), 1);
  auto over = (*work)->Test();
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, ErrorCode::kCancelled);
  *backend = nullptr;  // the work keeps the state
  EXPECT_EQ(recorded.calls, "");
  *work = nullptr;
  EXPECT_EQ(recorded.calls, "release destroy ");
}

TEST_F(BadOutsideDevicesTest, AStateThatWasNotCreatedIsNotDestroyed) {
  static std::string calls;
  rankrun_device_backend failing = good;
  failing.find_devices = [](void*, char*, size_t) { return RANKRUN_OK; };
  failing.create = [](void*, const rankrun_device_group*, void** state, char* reason, size_t size) {
    *state = &calls;
    snprintf(reason, size, "the GPU is lost");
    return RANKRUN_BACKEND;
  };
  failing.destroy = [](void*) { calls += "destroy "; };
  MemoryStore store(std::make_shared<MemoryKeys>());
  auto backend = (*CreatorOf(failing))(
      {.global_ranks = {0}, .group_rank = 0, .store = store, .key_prefix = "", .name = "g"});
  ASSERT_FALSE(backend);
  EXPECT_EQ(backend.error().message, "the GPU is lost");
  EXPECT_EQ(calls, "");
}

TEST_F(BadOutsideDevicesTest, WithoutMessagesTheyAreRefused) {
  good.find_devices = [](void*, char*, size_t) { return RANKRUN_OK; };
  auto creator = CreatorOf(good);
  ASSERT_TRUE(creator) << creator.error().message;
  MemoryStore store(std::make_shared<MemoryKeys>());
  auto backend = (*creator)(
      {.global_ranks = {0}, .group_rank = 0, .store = store, .key_prefix = "", .name = "g"});
  ASSERT_TRUE(backend) << backend.error().message;
  DeviceCall call{.operation = {.kind = Operation::Kind::kSend}};
  auto ok = (*backend)->Check(call);
  ASSERT_FALSE(ok);
  EXPECT_EQ(ok.error().message, "the backend good has no messages on GPU memory");
  call.operation.kind = Operation::Kind::kBarrier;
  EXPECT_TRUE((*backend)->Check(call));
}

}  // namespace
}  // namespace rankrun::comm

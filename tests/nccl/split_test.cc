// Groups whose GPUs are connected by means of their parent.

#include <gmock/gmock.h>
#include <signal.h>

#include <thread>

#include <rankrun/subgroups.h>

#include "tests/nccl/fake_cuda/trace.h"
#include "tests/nccl/gpu.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Runs the body in a world whose GPUs are connected.
std::vector<std::string> InConnectedWorld(int ranks,
                                          const std::function<std::string(ProcessGroup&)>& body) {
  return OnGpus(ranks, [&](ProcessGroup& world) {
    world.BarrierOn({.type = DeviceType::kCuda});
    fake_trace_take();
    return body(world);
  });
}

std::string SumIn(ProcessGroup& group, int32_t value) {
  OnGpu<int32_t> values({value});
  group.AllReduce(values);
  return testing::PrintToString(values.Read());
}

TEST(GpuSplitTest, PartsNeedNoConnectionOfTheirOwn) {
  auto texts = InConnectedWorld(4, [](ProcessGroup& world) {
    ProcessGroup& part = SplitGroup(world, {{3, 0}, {1, 2}},
                                    {.description = "half", .nccl = NcclOptions{.max_ctas = 4}});
    std::string text = SumIn(part, world.global_rank());
    text += SumIn(world, 1);
    return text + fake_trace_take();
  });
  EXPECT_THAT(texts[0], HasSubstr("{ 3 }{ 4 }"));
  EXPECT_THAT(texts[1], HasSubstr("{ 3 }{ 4 }"));
  EXPECT_THAT(texts, Each(AllOf(HasSubstr(" of half, max 4 CTAs\n"), Not(HasSubstr("init rank")))));
}

TEST(GpuSplitTest, APartOrdersItsRanksAsTheGroupDoes) {
  auto texts = InConnectedWorld(3, [](ProcessGroup& world) {
    ProcessGroup& part = SplitGroup(world, {{2, 0}, {1}});
    OnGpu<int32_t> all(std::vector<int32_t>(static_cast<size_t>(part.world_size())));
    part.AllGatherInto(all, OnGpu<int32_t>({world.global_rank()}));
    OnGpu<int32_t> root({world.global_rank()});
    part.Broadcast(root, GroupRank{0});
    return testing::PrintToString(all.Read()) + testing::PrintToString(root.Read());
  });
  EXPECT_THAT(texts, ElementsAre("{ 2, 0 }{ 2 }", "{ 1 }{ 1 }", "{ 2, 0 }{ 2 }"));
}

TEST(GpuSplitTest, ARankInNoPartTakesPart) {
  auto texts = InConnectedWorld(3, [](ProcessGroup& world) {
    ProcessGroup& part = SplitGroup(world, {{0, 2}});
    std::string trace = fake_trace_take();
    if (world.global_rank() == 1) return trace;
    return SumIn(part, 5);
  });
  EXPECT_THAT(texts, ElementsAre("{ 10 }", "split by color -1\n", "{ 10 }"));
}

TEST(GpuSplitTest, PartsOfPartsAndMessages) {
  auto texts = InConnectedWorld(4, [](ProcessGroup& world) {
    ProcessGroup& half = SplitGroup(world, {{0, 1}, {2, 3}});
    ProcessGroup& quarter = SplitGroup(half, {{0}, {1}});
    OnGpu<int32_t> mine({world.global_rank()}), theirs({-1});
    const GroupRank other{1 - half.group_rank()};
    Work sent = half.ISend(mine, other);
    half.Recv(theirs, other);
    sent.Wait();
    return SumIn(quarter, 7) + testing::PrintToString(theirs.Read());
  });
  EXPECT_THAT(texts, ElementsAre("{ 7 }{ 1 }", "{ 7 }{ 0 }", "{ 7 }{ 3 }", "{ 7 }{ 2 }"));
}

TEST(GpuSplitTest, AnUnconnectedParentLeavesTheConnectionToTheParts) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    fake_trace_take();
    ProcessGroup& part = SplitGroup(world, {{0, 1}}, {.description = "both"});
    std::string text = SumIn(part, 2);
    return text + fake_trace_take();
  });
  EXPECT_THAT(texts,
              Each(AllOf(HasSubstr("{ 4 }"), HasSubstr("init rank"), Not(HasSubstr("split")))));
}

TEST(GpuSplitTest, PartsWithoutGpusSplitNothing) {
  auto texts = InConnectedWorld(2, [](ProcessGroup& world) {
    ProcessGroup& part = SplitGroup(world, {{0, 1}}, {.backend = "shm"});
    std::string text = part.backend();
    return text + fake_trace_take();
  });
  EXPECT_THAT(texts, Each("shm"));
}

TEST(GpuSplitTest, AFailureOnOneRankBreaksTheParentOnAll) {
  auto texts = InConnectedWorld(3, [](ProcessGroup& world) {
    if (world.global_rank() == 1) fake_fail_next("ncclCommSplit", 3);
    std::string error = ErrorOf([&] { SplitGroup(world, {{0, 1}, {2}}); });
    return error + (world.state() == GroupState::kBroken ? "; broken" : "; not broken");
  });
  EXPECT_THAT(texts[1], HasSubstr("connect the GPUs: ncclCommSplit: "));
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("SplitGroup"), HasSubstr("; broken"))));
}

TEST(GpuSplitTest, ATimeOutEndsTheWait) {
  auto texts = InConnectedWorld(2, [](ProcessGroup& world) {
    fake_stall_next("ncclCommSplit");
    return ErrorOf([&] { SplitGroup(world, {{0, 1}}, {.timeout = std::chrono::seconds(3)}); });
  });
  EXPECT_THAT(texts, Contains(HasSubstr("connect the GPUs: ncclCommSplit did not end in time")));
  EXPECT_THAT(texts, Each(HasSubstr("SplitGroup")));
}

TEST(GpuSplitTest, ADeathEndsTheWait) {
  auto texts = InConnectedWorld(3, [](ProcessGroup& world) {
    if (world.global_rank() != 2) {
      fake_stall_next("ncclCommSplit");
      return ErrorOf([&] { SplitGroup(world, {{0, 1}, {2}}); });
    }
    std::thread([] {
      while (std::string(fake_trace_take()).find("split") == std::string::npos) {
        std::this_thread::yield();
      }
      raise(SIGKILL);
    }).detach();
    fake_stall_next("ncclCommSplit");
    SplitGroup(world, {{0, 1}, {2}});
    return std::string("survived");
  });
  EXPECT_THAT(texts[0], HasSubstr("rank 2"));
  EXPECT_THAT(texts[1], HasSubstr("rank 2"));
}

TEST(GpuSplitTest, PartsOfABrokenGroupConnectThemselves) {
  auto texts = InConnectedWorld(2, [](ProcessGroup& world) {
    OnGpu<int32_t> values({1, 2});
    std::string error = ErrorOfWork(
        [&] { return world.AllReduce(values.Part(0, world.global_rank() == 0 ? 1 : 2)); });
    if (error == "no error") return error;
    fake_trace_take();
    ProcessGroup& both = SplitGroup(world, {{0, 1}});
    std::string text = SumIn(both, 1);
    return text + fake_trace_take();
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("{ 2 }"), HasSubstr("init rank"))));
}

}  // namespace
}  // namespace rankrun::comm

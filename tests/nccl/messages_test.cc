// Messages between GPUs.

#include <gmock/gmock.h>
#include <nccl.h>

#include <rankrun/gpu.h>

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

GlobalRank Next(const ProcessGroup& world) {
  return GlobalRank{(world.global_rank() + 1) % world.world_size()};
}
GlobalRank Previous(const ProcessGroup& world) {
  return GlobalRank{(world.global_rank() + world.world_size() - 1) % world.world_size()};
}

std::string Text(const std::vector<int32_t>& values) { return testing::PrintToString(values); }

TEST(GpuMessagesTest, ArriveInTheOrderSent) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> first({0, 0}), second({0, 0, 0});
    if (world.group_rank() == 0) {
      world.Send(OnGpu<int32_t>({1, 2}), GlobalRank{1}, 5);
      world.Send(OnGpu<int32_t>({3, 4, 5}), GlobalRank{1}, 6);
      return std::string();
    }
    int sender = world.Recv(first, GlobalRank{0}, 5);
    world.Recv(second, GlobalRank{0}, 6);
    return Text(first.Read()) + Text(second.Read()) + " from " + std::to_string(sender);
  });
  EXPECT_THAT(texts, ElementsAre("", "{ 1, 2 }{ 3, 4, 5 } from 0"));
}

// The first messages of all pairs, none of which may wait for another pair.
TEST(GpuMessagesTest, GoRoundARing) {
  auto texts = OnGpus(4, [](ProcessGroup& world) {
    OnGpu<int32_t> mine({world.global_rank()}), theirs({-1});
    Work sent = world.ISend(mine, Next(world));
    Work received = world.IRecv(theirs, Previous(world));
    sent.Wait();
    received.Wait();
    std::string text = Text(theirs.Read());
    if (!received.WaitFor(std::chrono::minutes(1))) text += ", without an end";
    return text + " from " + std::to_string(received.source_global_rank());
  });
  EXPECT_THAT(texts, ElementsAre("{ 3 } from 3", "{ 0 } from 0", "{ 1 } from 1", "{ 2 } from 2"));
}

TEST(GpuMessagesTest, CrossEachOther) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> mine({world.global_rank()}), theirs({-1});
    const P2POp operations[] = {
        {.kind = P2POp::Kind::kSend, .tensor = mine, .peer = Next(world)},
        {.kind = P2POp::Kind::kRecv, .tensor = theirs, .peer = Next(world)},
        {.kind = P2POp::Kind::kSend, .tensor = mine, .peer = Next(world)},
        {.kind = P2POp::Kind::kRecv, .tensor = theirs, .peer = Next(world)}};
    for (const Work& work : world.Batch(operations)) work.Wait();
    world.AllReduce(theirs);  // beside messages
    return Text(theirs.Read());
  });
  EXPECT_THAT(texts, Each("{ 1 }"));
}

TEST(GpuMessagesTest, MayBeEmpty) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> value({7});
    Work work = world.group_rank() == 0 ? world.ISend(value.Part(0, 0), GlobalRank{1})
                                        : world.IRecv(value.Part(0, 0), GlobalRank{0});
    return EndOf(work);
  });
  EXPECT_THAT(texts, Each("no error"));
}

TEST(GpuMessagesTest, AreEnqueuedBetweenTheirEvents) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> value({1});
    auto move = [&] {
      return world.group_rank() == 0 ? world.ISend(value, GlobalRank{1})
                                     : world.IRecv(value, GlobalRank{0});
    };
    EXPECT_EQ(EndOf(move()), "no error");  // connects
    GatedStream kernels;                   // so that the message is under way at Wait
    StreamScope scope(kernels.get());
    fake_trace_take();
    Work work = move();
    work.Wait();
    std::string trace = fake_trace_take();
    kernels.Open();
    EXPECT_EQ(EndOf(work), "no error");
    return trace;
  });
  auto around = [](const std::string& call) {
    return "record an event in a stream\n"
           "a stream waits for an event\n" +
           call +
           "record an event in a stream\n"
           "a stream waits for an event\n";
  };
  EXPECT_THAT(texts, ElementsAre(around("ncclSend 4 x uint8 to 1\n"),
                                 around("ncclRecv 4 x uint8 from 0\n")));
}

TEST(GpuMessagesTest, APairHasACommunicatorForEachDirection) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> value({1});
    fake_trace_take();
    for (int sender : {0, 1, 0, 1}) {
      bool sends = sender == world.group_rank();
      Work work = sends ? world.ISend(value, Next(world)) : world.IRecv(value, Next(world));
      work.Wait();
      EXPECT_EQ(EndOf(work), "no error");
    }
    const std::string trace = fake_trace_take();
    int made = 0;
    for (size_t at = 0; (at = trace.find("of 2 of world messages", at)) != std::string::npos;
         ++at) {
      made += 1;
    }
    return std::to_string(made);
  });
  EXPECT_THAT(texts, Each("2"));
}

// The error of a message of either rank.
std::vector<std::string> ErrorsOf(const std::function<Work(ProcessGroup&)>& send,
                                  const std::function<Work(ProcessGroup&)>& receive,
                                  const char* cpu_backend) {
  return OnGpus(
      2,
      [&](ProcessGroup& world) {
        Work work;
        std::string error =
            ErrorOf([&] { work = world.group_rank() == 0 ? send(world) : receive(world); });
        return error == "no error" ? EndOf(work) : error;
      },
      cpu_backend);
}

struct GpuMessageMismatchTest : testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, GpuMessageMismatchTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(GpuMessageMismatchTest, OfSizesAndTypesIsToldToBoth) {
  auto texts = ErrorsOf(
      [](ProcessGroup& world) {
        static OnGpu<int32_t> four({1, 2, 3, 4});
        return world.ISend(four, GlobalRank{1});
      },
      [](ProcessGroup& world) {
        static OnGpu<float> three({1, 2, 3});
        return world.IRecv(three, GlobalRank{0});
      },
      GetParam());
  EXPECT_THAT(texts, Each(AllOf(StartsWith("DistMismatchError"),
                                HasSubstr("rank 0 sends 4 x int32 with tag 0 to rank 1, which "
                                          "expects 3 x float32"))));
}

TEST_P(GpuMessageMismatchTest, OfTagsIsToldToBoth) {
  auto texts = ErrorsOf(
      [](ProcessGroup& world) {
        static OnGpu<int32_t> one({1});
        return world.ISend(one, GlobalRank{1}, 5);
      },
      [](ProcessGroup& world) {
        static OnGpu<int32_t> one({1});
        return world.IRecv(one, GlobalRank{0}, 6);
      },
      GetParam());
  EXPECT_THAT(texts, Each(AllOf(StartsWith("DistMismatchError"),
                                HasSubstr("rank 0 sends 1 x int32 with tag 5 to rank 1, which "
                                          "expects 1 x int32 with tag 6"))));
}

TEST(GpuMessagesTest, WithoutItsOtherEndTimesOutFromTheFirstWait) {
  InSharedMemory<std::atomic<bool>> told;
  auto texts = OnRanks(2, [&](int rank) {
    InitOptions options = WithGpus();
    options.timeout = milliseconds(300);
    ProcessGroup& world = Init(options);
    OnGpu<int32_t> value({1});
    std::string text;
    if (rank == 0) {
      Work work = world.IRecv(value, GlobalRank{1}, 4);
      auto posted = MonotonicClock().Now();
      while (MonotonicClock().Now() < posted + milliseconds(400)) std::this_thread::yield();
      text = world.state() == GroupState::kOk ? "" : "broken before the wait; ";
      text += ErrorOf([&] { work.Wait(); });
      told->store(true);
    }
    while (!told->load()) std::this_thread::yield();
    Destroy();
    return text;
  });
  EXPECT_THAT(texts[0], AllOf(StartsWith("DistTimeoutError"),
                              HasSubstr("Recv (1 x int32 on cuda from rank 1, tag 4)"),
                              HasSubstr("no matching Send after 300 ms")));
}

TEST(GpuMessagesTest, AMessageInCpuMemoryDoesNotMatch) {
  auto texts = OnRanks(2, [](int rank) {
    ProcessGroup& world = Init(WithGpus());
    OnGpu<int32_t> on_gpu({1});
    std::vector<int32_t> on_cpu{1};
    std::string text = ErrorOf([&] {
      if (rank == 0) {
        world.Send(on_gpu, GlobalRank{1}, 4);
      } else {
        world.Recv(on_cpu, GlobalRank{0}, 4, milliseconds(500));
      }
    });
    Destroy();
    return text;
  });
  EXPECT_THAT(texts[0], HasSubstr("Send (1 x int32 on cuda to rank 1, tag 4)"));
  EXPECT_THAT(texts[1], HasSubstr("rank 0 has sent a message in GPU memory, for which nobody has "
                                  "asked"));
}

TEST(GpuMessagesTest, WhatNcclCannotMoveIsRefused) {
  auto texts = OnGpus(1, [](ProcessGroup& world) {
    OnGpu<int32_t> value({1});
    return ErrorOf([&] { world.IRecv(value); }) + "\n" +
           ErrorOf([&] { world.ISend(value, GlobalRank{0}); }) + "\n" +
           ErrorOf([&] { world.Send(value.Part(0, 1), GlobalRank{0}); }) +
           (world.state() == GroupState::kOk ? "" : "broken");
  });
  EXPECT_EQ(texts[0],
            "DistError: Recv of the world process group, rank 0 of 1: the source is any rank: want "
            "one rank for GPU memory\n"
            "DistError: Send of the world process group, rank 0 of 1: it is a message of this rank "
            "to itself: want a copy on the GPU\n"
            "DistError: Send of the world process group, rank 0 of 1: it is a message of this rank "
            "to itself: want a copy on the GPU");
}

TEST(GpuMessagesTest, NeedABackendForGpus) {
  auto texts = OnRanks(2, [](int) {
    ProcessGroup& world = Init({.backend = "shm"});
    OnGpu<int32_t> value({1});
    std::string text = ErrorOf([&] { world.ISend(value, Next(world)); });
    Destroy();
    return text;
  });
  EXPECT_THAT(texts, Each(HasSubstr("the call is for cuda:0, but the group's backend is \"shm\"")));
}

TEST(GpuMessagesTest, DestroyEndsAMessageThatNobodyHasWaitedFor) {
  auto texts = OnRanks(2, [](int rank) {
    ProcessGroup& world = Init(WithGpus());
    OnGpu<int32_t> value({1});
    Work work;
    if (rank == 0) work = world.IRecv(value, GlobalRank{1});
    Destroy();
    return rank == 0 ? EndOf(work) : "";
  });
  EXPECT_THAT(texts[0], HasSubstr("this rank destroyed the process group"));
}

TEST(GpuMessagesTest, DestroyDoesNotEndOneThatIsComplete) {
  auto texts = OnRanks(2, [](int rank) {
    ProcessGroup& world = Init(WithGpus());
    OnGpu<int32_t> value({1});
    Work work = rank == 0 ? world.ISend(value, GlobalRank{1}) : world.IRecv(value, GlobalRank{0});
    while (!work.IsCompleted()) std::this_thread::yield();
    world.Barrier();
    fake_trace_take();
    Destroy();
    const std::string trace = fake_trace_take();
    std::string text = EndOf(work);
    if (trace.find("abort") != std::string::npos) text += ", aborted";
    if (trace.find("destroy") == std::string::npos) text += ", kept by the work";
    return text;
  });
  EXPECT_THAT(texts, Each("no error"));
}

TEST(GpuMessagesTest, DestroyWaitsForOneInAStream) {
  auto texts = OnRanks(2, [](int rank) {
    ProcessGroup& world = Init(WithGpus());
    OnGpu<int32_t> value({rank});
    if (rank == 0) {
      world.Send(OnGpu<int32_t>({7}), GlobalRank{1});
    } else {
      world.Recv(value, GlobalRank{0});
    }
    Destroy();
    return rank == 0 ? "" : Text(value.Read());
  });
  EXPECT_THAT(texts, ElementsAre("", "{ 7 }"));
}

TEST(GpuMessagesTest, AnErrorOfNcclBreaksTheGroup) {
  auto texts = OnGpus(2, [](ProcessGroup& world) {
    OnGpu<int32_t> value({1});
    fake_fail_next("ncclCommInitRankConfig", ncclSystemError);
    return ErrorOf([&] {
      if (world.group_rank() == 0) {
        world.Send(value, GlobalRank{1});
      } else {
        world.Recv(value, GlobalRank{0});
      }
    });
  });
  EXPECT_THAT(texts, Each(HasSubstr("ncclCommInitRankConfig: unhandled system error")));
}

}  // namespace
}  // namespace rankrun::comm

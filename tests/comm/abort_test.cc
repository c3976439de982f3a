// Abort of a group: what waits on this rank ends, the other ranks hear of it by name, and
// Destroy has nothing to wait for.

#include <gmock/gmock.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/context.h>
#include <rankrun/diagnosis/operation_hooks.h>
#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>
#include <rankrun/rpc.h>
#include <rankrun/subgroups.h>

#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using test::WaitFor;
using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;

// Two pairs on different hosts, for the hierarchical backend.
constexpr int kAllRanks = 4;
constexpr char kText[] = "rank 3 aborted the group: the watchdog is tired";
constexpr char kReason[] = "the watchdog is tired";

// Returns an empty text if `error` is a DistError that ends with the text of the abort.
std::string Wrong(const std::string& error) {
  bool is_right = error.starts_with("Dist") && error.find(kText) != std::string::npos;
  return is_right ? "" : error + "\n";
}

// As Wrong, for a rank that has aborted: the class is the same on all backends.
std::string WrongHere(const std::string& error) {
  return error.starts_with("DistBackendError: ") ? Wrong(error) : error + "\n";
}

// Calls `act` in a thread of its own.
class Elsewhere {
 public:
  explicit Elsewhere(std::function<void()> act)
      : thread_([this, act = std::move(act)] {
          has_begun_ = true;
          error_ = ErrorOf(act);
        }) {
    EXPECT_TRUE(WaitFor([&] { return has_begun_.load(); }));
  }
  std::string Error() {
    thread_.join();
    return error_;
  }

 private:
  std::atomic<bool> has_begun_ = false;
  std::string error_;
  std::jthread thread_;  // last, because it uses the others
};

struct AbortTest : testing::TestWithParam<const char*> {
  static std::vector<std::string> In(const std::function<std::string(ProcessGroup& world)>& body) {
    return InWorld(kAllRanks, GetParam(), body);
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, AbortTest, testing::Values("shm", "tcp", "hierarchical", "gloo"),
                         NameOfBackend);

TEST_P(AbortTest, ABlockedCollectiveEndsOnAllRanks) {
  InSharedMemory<std::atomic<bool>> is_aborted;
  EXPECT_THAT(In([&](ProcessGroup& world) {
                std::vector<float> data(1000);
                if (world.global_rank() == 3) {
                  Elsewhere caller([&] { world.AllReduce(data); });
                  Abort(world, kReason);
                  *is_aborted = true;
                  return WrongHere(caller.Error()) +
                         WrongHere(ErrorOf([&] { world.AllReduce(data); }));
                }
                if (world.global_rank() == 2) {  // comes late
                  EXPECT_TRUE(WaitFor([&] { return is_aborted->load(); }));
                  std::string wrong = Wrong(ErrorOf([&] { world.Recv(data, GlobalRank{3}); }));
                  return wrong + Wrong(ErrorOf([&] { world.AllReduce(data); }));
                }
                return Wrong(ErrorOf([&] { world.AllReduce(data); })) +
                       Wrong(ErrorOf([&] { world.AllReduce(data); }));
              }),
              Each(""));
}

// Rank 0 waits for rank 1, which is sound, but makes no call until rank 0 has heard of the abort.
TEST_P(AbortTest, ARankThatWaitsForAnIdleOneHearsOfIt) {
  InSharedMemory<std::atomic<bool>> has_heard;
  EXPECT_THAT(In([&](ProcessGroup& world) {
                std::vector<float> data(10);
                if (world.global_rank() == 0) {
                  std::string wrong = Wrong(ErrorOf([&] { world.Recv(data, GlobalRank{1}); }));
                  *has_heard = true;
                  return wrong;
                }
                if (world.global_rank() == 3) Abort(world, kReason);
                EXPECT_TRUE(WaitFor([&] { return has_heard->load(); }));
                return Wrong(ErrorOf([&] { world.Barrier(); }));
              }),
              Each(""));
}

TEST_P(AbortTest, EachPendingCallOfTheRankEnds) {
  EXPECT_THAT(In([&](ProcessGroup& world) {
                std::vector<float> data(1000), large(100'000), self(1), other(10);
                if (world.global_rank() != 3) {
                  return Wrong(ErrorOf([&] { world.Recv(data, GlobalRank{3}); }));
                }
                std::vector<Work> works{world.AllReduce(data, ReduceOp::kSum, kAsync),
                                        world.Barrier(kAsync), world.IRecv(other, GlobalRank{0}, 1),
                                        world.IRecv(self, GlobalRank{3}, 3),
                                        world.IRecv(large, {}, 4)};
                Elsewhere waiter([&] { works[0].Wait(); });
                Elsewhere collective([&] { world.Barrier(); });  // behind those in the queue
                Elsewhere receiver([&] { world.Recv(data, GlobalRank{1}, 5); });
                Elsewhere sender([&] { world.Send(large, GlobalRank{2}, 6); });
                Elsewhere to_self([&] { world.Recv(self, GlobalRank{3}, 7); });
                Abort(world, kReason);
                std::string wrong;
                for (Elsewhere* each : {&waiter, &collective, &receiver, &to_self}) {
                  wrong += WrongHere(each->Error());
                }
                std::string sent = sender.Error();  // no error on shm: the receiver buffers it
                wrong += sent == "no error" ? "" : WrongHere(sent);
                for (Work& work : works) wrong += WrongHere(ErrorOf([&] { work.Wait(); }));
                return wrong;
              }),
              Each(""));
}

TEST_P(AbortTest, AMonitoredBarrierEndsOnAllRanks) {
  EXPECT_THAT(In([&](ProcessGroup& world) {
                if (world.global_rank() == 2) {  // comes when the others have gone
                  std::vector<int> none(1);
                  std::string wrong = Wrong(ErrorOf([&] { world.Recv(none, GlobalRank{3}); }));
                  return wrong + Wrong(ErrorOf([&] { world.MonitoredBarrier(); }));
                }
                if (world.global_rank() != 3) {
                  return Wrong(ErrorOf([&] { world.MonitoredBarrier(); }));
                }
                Elsewhere caller([&] { world.MonitoredBarrier(); });
                Abort(world, kReason);
                return WrongHere(caller.Error()) +
                       WrongHere(ErrorOf([&] { world.MonitoredBarrier(); }));
              }),
              Each(""));
}

TEST_P(AbortTest, ASubgroupLeavesTheWorldUsable) {
  EXPECT_THAT(In([&](ProcessGroup& world) {
                ProcessGroup& pair = SplitGroup(world, {{0, 1}, {2, 3}});
                std::string wrong;
                if (world.global_rank() == 3) {
                  Elsewhere caller([&] { SumOf(pair); });
                  Abort(pair, kReason);
                  wrong = WrongHere(caller.Error());
                } else if (world.global_rank() == 2) {
                  std::vector<int> none(1);
                  wrong = Wrong(ErrorOf([&] { pair.Recv(none); }));
                } else {
                  wrong = SumOf(pair) == "2 of 2" ? "" : "the other pair is broken";
                }
                wrong += SumOf(world);
                Destroy(pair);
                return wrong + ", " + SumOf(world);
              }),
              Each("4 of 4, 4 of 4"));
}

TEST_P(AbortTest, AWorldMeansAllItsGroups) {
  EXPECT_THAT(In([&](ProcessGroup& world) {
                ProcessGroup& pair = NewGroup({.ranks = {2, 3}});
                ProcessGroup& others = NewGroup({.ranks = {0, 1}});
                if (world.global_rank() < 2) return SumOf(others);
                if (world.global_rank() == 2) {
                  return Wrong(ErrorOf([&] { pair.Barrier(); })) + "2 of 2";
                }
                std::vector<int> none(1);
                Elsewhere caller([&] { pair.Recv(none); });
                Abort(world, kReason);
                Abort(world, "again");
                Abort(pair, "again");
                std::string wrong = WrongHere(caller.Error());
                wrong += pair.broken_reason() == kText ? "" : pair.broken_reason();
                wrong += world.state() == GroupState::kBroken ? "" : "the world is not broken";
                return wrong + WrongHere(ErrorOf([&] { NewGroup({}); })) + "2 of 2";
              }),
              Each("2 of 2"));
}

TEST_P(AbortTest, RanksThatWaitToMakeAGroupHearOfIt) {
  EXPECT_THAT(In([&](ProcessGroup& world) {
                if (world.global_rank() == 3) {
                  Elsewhere caller([&] { NewGroup({}); });
                  Abort(world, kReason);
                  return WrongHere(caller.Error());
                }
                if (world.global_rank() != 0) return Wrong(ErrorOf([] { NewGroup({}); }));
                std::vector<int> none(1);
                return Wrong(ErrorOf([&] { world.Recv(none, GlobalRank{3}); }));
              }),
              Each(""));
}

TEST_P(AbortTest, ANewWorldFollows) {
  EXPECT_THAT(OnRanks(kAllRanks,
                      [&](int rank) {
                        SetHostFor(GetParam(), rank);
                        std::string text;
                        for (int i = 0; i < 3; ++i) {
                          ProcessGroup& world =
                              Init({.timeout = std::chrono::seconds(60), .backend = GetParam()});
                          text += SumOf(world) + " ";
                          world.MonitoredBarrier();  // all have their sum
                          if (rank == 3) Abort(world);
                          Destroy();
                        }
                        return text;
                      }),
              Each("4 of 4 4 of 4 4 of 4 "));
}

// Destroy of one thread waits for work that no other rank begins; another thread ends it.
TEST_P(AbortTest, EndsWhatDestroyWaitsFor) {
  EXPECT_THAT(In([&](ProcessGroup& world) {
                std::vector<float> data(10);
                if (world.global_rank() != 3) {
                  return Wrong(ErrorOf([&] { world.Recv(data, GlobalRank{3}); }));
                }
                Work work = world.AllReduce(data, ReduceOp::kSum, kAsync);
                Elsewhere destroyer([] { Destroy(); });
                Abort(world, kReason);
                std::string text = destroyer.Error() == "no error" ? "" : "Destroy failed";
                return text + WrongHere(ErrorOf([&] { work.Wait(); }));
              }),
              Each(""));
}

// A thread that has not yet returned from its call does not use the memory of a group that
// is gone.
TEST_P(AbortTest, DestroyMayFollowAtOnce) {
  EXPECT_THAT(
      In([&](ProcessGroup& world) {
        std::vector<float> data(10), received(10);
        if (world.global_rank() != 3) {
          return Wrong(ErrorOf([&] { world.Recv(data, GlobalRank{3}); }));
        }
        std::atomic<int> begun = 0;
        OperationHooks hooks({.on_start = [&](const OperationInfo&) { begun += 1; }, .on_end = {}});
        Elsewhere collective([&] { world.AllReduce(data); });
        Elsewhere receiver([&] { world.Recv(received, GlobalRank{0}); });
        EXPECT_TRUE(WaitFor([&] { return begun.load() == 2; }));
        Abort(world, kReason);
        Destroy();
        return WrongHere(collective.Error()) + WrongHere(receiver.Error());
      }),
      Each(""));
}

TEST_P(AbortTest, AForkIsRefused) {
  EXPECT_THAT(In([&](ProcessGroup& world) {
                ChildProcess child([&] {
                  std::string error = ErrorOf([&] { Abort(world, kReason); });
                  error += rankrun_abort(nullptr, nullptr) == RANKRUN_INVALID ? "; C, too" : "";
                  return error;
                });
                std::string error = child.Text();
                bool is_right = error.starts_with("DistError: Abort: this process (pid ") &&
                                error.find("is a fork of rank ") != std::string::npos &&
                                error.ends_with("; C, too");
                return (is_right ? "" : error) + SumOf(world);
              }),
              Each("4 of 4"));
}

// A backend of a rank without others aborts the world while a group is connected.
TEST(AbortOfNewGroupTest, EndsAGroupThatIsBeingMade) {
  auto texts = OnRanks(1, [](int) {
    const rankrun_backend backend{
        .size = sizeof(rankrun_backend),
        .version = RANKRUN_BACKEND_VERSION,
        .name = "aborting",
        .context = nullptr,
        .connect =
            [](void*, const rankrun_backend_group*, rankrun_connection*, char*, size_t) {
              Abort(World(), kReason);
              return RANKRUN_OK;
            },
        .send = [](void*, const iovec*, int) { return ssize_t{-EPIPE}; },
        .receive = [](void*, const iovec*, int) { return ssize_t{-EPIPE}; },
        .shut_down = [](void*) {},
        .close = [](void*) {},
        .open_group = nullptr,
        .takes = nullptr,
        .run = nullptr,
        .close_group = nullptr};
    EXPECT_EQ(rankrun_register_backend(&backend), RANKRUN_OK);
    Init({.backend = "shm"});
    ProcessGroup& made = NewGroup({.backend = "aborting"});
    std::string text = made.broken_reason() + "\n" + ErrorOf([&] { made.Barrier(); }) + "\n" +
                       ErrorOf([] { NewGroup({}); });
    Destroy();
    return text + "\n" + SumOf(Init({.backend = "shm"}));
  });
  EXPECT_THAT(
      texts[0],
      AllOf(testing::StartsWith("rank 0 aborted the group: the watchdog is tired\nDist"),
            HasSubstr("is broken: rank 0 aborted the group: the watchdog is tired\nDist"),
            EndsWith("is broken: rank 0 aborted the group: the watchdog is tired\n1 of 1")));
}

TEST(AbortOfNoGroupTest, IsAnError) {
  auto texts = OnRanks(1, [](int) {
    std::string before = ErrorOf([] { Abort(World()); });
    ProcessGroup& world = Init({.backend = "shm"});
    Destroy();
    return before + "\n" + ErrorOf([&] { Abort(world); });
  });
  EXPECT_EQ(texts[0],
            "DistError: World: there is no world process group: call Init() first\n"
            "DistError: Abort: the world process group, rank 0 of 1 is destroyed: want no call "
            "after Destroy()");
}

TEST(AbortOfNoGroupTest, OnARankThatIsNoMemberWarns) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    ProcessGroup& alone = NewGroup({.ranks = {0}});
    if (world.global_rank() == 1) Abort(alone);
    setenv("RANKRUN_STRICT", "1", 1);
    return SumOf(world) + ", " + SumOf(alone);
  });
  EXPECT_EQ(texts[0], "2 of 2, 1 of 1");
}

TEST(AbortReasonTest, IsOneLineAndMayBeEmptyOrLong) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    ProcessGroup& second = NewGroup({});
    ProcessGroup& third = NewGroup({});
    std::vector<int> none(1);
    if (world.global_rank() == 1) {
      Abort(third, std::string(5000, 'x'));
      Abort(second, "two\nlines");
      Abort(world);
    }
    std::string text;
    for (ProcessGroup* group : {&third, &second, &world}) {
      text += ErrorOf([&] { group->Recv(none, GlobalRank{1 - world.global_rank()}); }) + "\n";
    }
    return text;
  });
  for (const std::string& text : texts) {
    EXPECT_THAT(text, AllOf(HasSubstr("rank 1 aborted the group: " + std::string(400, 'x') + "\n"),
                            HasSubstr("rank 1 aborted the group: two lines\n"),
                            EndsWith("rank 1 aborted the group\n")));
  }
}

TEST(AbortContextTest, LeavesTheWorldOfInitUsable) {
  auto texts = InWorld(2, "tcp", [](ProcessGroup& world) {
    std::string wrong;
    {
      Context context("beside", {.timeout = std::chrono::seconds(60), .backend = "tcp"});
      if (world.global_rank() == 1) Abort(context.World());
      wrong = ErrorOf([&] { SumOf(context.World()); });
    }
    return wrong + "\n" + SumOf(world);
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("rank 1 aborted the group\n"), EndsWith("\n2 of 2"))));
}

TEST(AbortRpcTest, RpcOnTheSameRanksGoesOn) {
  rpc::RegisterMethod("twice", [](const rpc::WorkerInfo&, const rpc::Payload& text) {
    return rpc::Payload{text.bytes + text.bytes};
  });
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    rpc::Init("worker" + std::to_string(world.global_rank()));
    std::vector<int> none(1);
    if (world.global_rank() == 1) Abort(world, kReason);
    std::string text = ErrorOf([&] { world.Recv(none, GlobalRank{1 - world.global_rank()}); });
    const std::string other = "worker" + std::to_string(1 - world.global_rank());
    text += "\n" + rpc::RpcSync(other, "twice", {"two"}).bytes;
    rpc::Shutdown();
    return text;
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("rank 1 aborted the group"), EndsWith("\ntwotwo"))));
}

}  // namespace
}  // namespace rankrun::comm

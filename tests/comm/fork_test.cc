// Forks of ranks, such as data loaders: no call of theirs reaches the other ranks, and the
// next results of their parents are right.

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/context.h>
#include <rankrun/distributed.h>
#include <rankrun/future.h>
#include <rankrun/mesh.h>
#include <rankrun/objects.h>
#include <rankrun/rankrun.h>
#include <rankrun/rpc.h>
#include <rankrun/store.h>
#include <rankrun/subgroups.h>

#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using test::WaitFor;
using testing::Each;

// Two pairs on different hosts, for the hierarchical backend.
constexpr int kRanks = 4;
constexpr char kSum[] = "4 of 4";
// Far below the time-outs of the calls: those of a child fail at once.
constexpr std::chrono::milliseconds kAtOnce{10'000};

// Runs `body` in a fork and returns its text.
std::string InFork(const std::function<std::string()>& body) {
  ChildProcess child(body);
  std::string text = child.Text();
  if (child.status() != 0) text += "status " + std::to_string(child.status()) + "\n";
  return text;
}

// Returns a line for each call that is not the error of a fork.
std::string WrongErrors(const std::vector<std::function<void()>>& calls) {
  std::string wrong;
  for (size_t i = 0; i < calls.size(); ++i) {
    std::string error = ErrorOf(calls[i], kAtOnce);
    bool right =
        error.starts_with("DistError: ") && error.find("is a fork of ") != std::string::npos;
    if (!right) wrong += "call " + std::to_string(i) + ": " + error + "\n";
  }
  return wrong;
}

std::vector<std::function<void()>> CallsOn(ProcessGroup& group) {
  static std::vector<int64_t> data{100};
  static std::vector<int64_t> all(kRanks);
  static std::vector<Object> objects(1);
  const GlobalRank other{group.global_rank() == 0 ? 1 : 0};
  return {
      [&] { group.AllReduce(data); },
      [&] { group.AllReduce(data, ReduceOp::kSum, kAsync); },
      [&] { group.Reduce(data, GlobalRank{0}); },
      [&] { group.Broadcast(data, GlobalRank{0}); },
      [&] { group.AllGatherInto(all, data); },
      [&] { group.ReduceScatterFrom(data, all); },
      [&] { group.AllToAllSingle(all, all); },
      [&] { group.Barrier(); },
      [&] { group.MonitoredBarrier(); },
      [&, other] { group.Send(data, other); },
      [&] { group.Recv(data); },
      [&, other] { group.ISend(data, other); },
      [&] { group.IRecv(data); },
      [&] { group.Batch({}); },
      [&] { group.state(); },
      [&] { group.broken_reason(); },
      [&] { AllGatherObject(group, {}); },
      [&] { BroadcastObjects(group, objects, GlobalRank{0}); },
      [&] {
        SplitGroup(group, {{0, 1}, {2, 3}});
      },
      [&] { ShrinkGroup(group, {1}); },
  };
}

// All that a child can do with the groups of its parent.
std::string UseAndDestroy(ProcessGroup& world) {
  std::string wrong = WrongErrors(CallsOn(world));
  wrong += WrongErrors({[] { Init({}); }, [] { NewGroup({}); },
                        [] {
                          InitDeviceMesh("cpu", {2, 2});
                        }});
  Destroy(world);
  Destroy();
  wrong += WrongErrors(CallsOn(world));
  return wrong;
}

struct ForkTest : testing::TestWithParam<const char*> {
  static std::vector<std::string> In(const std::function<std::string(ProcessGroup& world)>& body) {
    return InWorld(kRanks, GetParam(), body);
  }
};

TEST_P(ForkTest, AChildOfAnIdleRankIsRefused) {
  EXPECT_THAT(In([](ProcessGroup& world) {
                SumOf(world);
                std::string wrong = InFork([&] { return UseAndDestroy(world); });
                return wrong + SumOf(world);
              }),
              Each(kSum));
}

TEST_P(ForkTest, AChildMayReadThePlaceOfItsParent) {
  EXPECT_THAT(In([](ProcessGroup& world) {
                auto place = [&] {
                  return std::to_string(World().group_rank()) + " of " +
                         std::to_string(world.world_size()) + " by " + world.backend();
                };
                return InFork(place) == place() ? "equal" : "unequal";
              }),
              Each("equal"));
}

TEST_P(ForkTest, TheErrorNamesBothProcesses) {
  EXPECT_THAT(In([](ProcessGroup& world) {
                const std::string parent = std::to_string(getpid());
                std::string error = InFork([&] {
                  return ErrorOf([&] { SumOf(world); }) + "; I am " + std::to_string(getpid());
                });
                size_t last = error.rfind(' ');
                std::string child = error.substr(last + 1);
                const std::string rank = std::to_string(world.global_rank());
                const std::string want =
                    "DistError: AllReduce of the world process group, rank " + rank +
                    " of 4: this process (pid " + child + ") is a fork of rank " + rank + " (pid " +
                    parent +
                    "), and only that one may use its process groups: want "
                    "no such call in a data loader, or start it before Init or by exec; I am " +
                    child;
                return error == want ? "equal" : error + "\nwanted\n" + want;
              }),
              Each("equal"));
}

TEST_P(ForkTest, AChildOfARankInACallIsRefused) {
  InSharedMemory<std::atomic<int>> has_forked;
  EXPECT_THAT(In([&](ProcessGroup& world) {
                if (world.group_rank() != 0) {
                  EXPECT_TRUE(WaitFor([&] { return has_forked->load() == 1; }));
                  return SumOf(world);
                }
                std::atomic<bool> begins = false;
                std::string sum;
                std::jthread caller([&] {
                  begins = true;
                  sum = SumOf(world);  // waits for the other ranks
                });
                EXPECT_TRUE(WaitFor([&] { return begins.load(); }));
                std::string wrong;
                // Some of these forks find the other thread deep in its call.
                for (int i = 0; i < 5; ++i) {
                  wrong += InFork([&] { return UseAndDestroy(world); });
                }
                *has_forked = 1;
                caller.join();
                return wrong + sum;
              }),
              Each(kSum));
}

TEST_P(ForkTest, AChildOfARankWithWorkUnderWayIsRefused) {
  EXPECT_THAT(In([&](ProcessGroup& world) {
                const int rank = world.group_rank();
                const GroupRank left{(rank + kRanks - 1) % kRanks};
                const GroupRank right{(rank + 1) % kRanks};
                std::vector<int64_t> one{1};
                std::vector<int64_t> received{0};
                std::optional<Work> message = world.IRecv(received, left, 7);
                std::optional<Work> sum;
                if (rank == 0) sum = world.AllReduce(one, ReduceOp::kSum, kAsync);
                std::string wrong = InFork([&] {
                  std::string text;
                  for (auto* work : {&message, &sum}) {
                    if (!*work) continue;
                    text += WrongErrors(
                        {[&] { (*work)->Wait(); }, [&] { (*work)->WaitFor(std::chrono::hours(1)); },
                         [&] { (*work)->IsCompleted(); }, [&] { (*work)->result(); },
                         [&] { (*work)->exception(); }, [&] { (*work)->Then([] {}); },
                         [&] { (*work)->source_global_rank(); }});
                    work->reset();
                  }
                  return text + UseAndDestroy(world);
                });
                world.MonitoredBarrier();  // no rank sends before all have forked
                if (rank != 0) sum = world.AllReduce(one, ReduceOp::kSum, kAsync);
                sum->Wait();
                world.Send(one, right, 7);
                message->Wait();
                return wrong + std::to_string(received[0]) + " of " + SumOf(world);
              }),
              Each("4 of 4 of 4"));
}

TEST_P(ForkTest, AChildThatExitsEndsNothing) {
  EXPECT_THAT(
      In([](ProcessGroup& world) {
        Context context("beside", {.timeout = std::chrono::seconds(60), .backend = GetParam()});
        std::string wrong;
        std::fflush(nullptr);  // the child would print it again
        const pid_t child = fork();
        if (child == 0) {
          Context& copy = context;
          std::string text =
              WrongErrors(CallsOn(copy.World())) +
              WrongErrors({[&] { copy.NewGroup({}); }, [] { Context again("beside", {}); }});
          copy.~Context();
          std::fputs(text.c_str(), stderr);
          std::exit(text.empty() ? 0 : 1);  // exit handlers and static destructors run
        }
        int status = -1;
        waitpid(child, &status, 0);
        if (status != 0) wrong += "status " + std::to_string(status) + "\n";
        return wrong + SumOf(context.World()) + ", " + SumOf(world);
      }),
      Each("4 of 4, 4 of 4"));
}

// A child that lives on keeps copies of its parent's descriptors.
TEST_P(ForkTest, ARankWithAChildCanEnd) {
  EXPECT_THAT(In([](ProcessGroup& world) {
                SumOf(world);
                ChildProcess child([] {
                  for (;;) pause();
                  return std::string();
                });
                Destroy();
                ProcessGroup& next =
                    Init({.timeout = std::chrono::seconds(60), .backend = GetParam()});
                return SumOf(next);
              }),
              Each(kSum));
}

INSTANTIATE_TEST_SUITE_P(Backends, ForkTest, testing::Values("shm", "tcp", "hierarchical", "gloo"),
                         NameOfBackend);

// The C functions return a status, with the same text.
TEST(ForkOfARankTest, TheCFunctionsOfAChildFail) {
  EXPECT_THAT(
      InWorld(2, "shm",
              [](ProcessGroup& world) {
                std::string text = InFork([] {
                  int64_t one = 100;
                  rankrun_tensor tensor{};
                  tensor.data = &one;
                  tensor.count = 1;
                  tensor.dtype = RANKRUN_INT64;
                  std::string wrong;
                  auto check = [&](rankrun_status status) {
                    const std::string error = rankrun_last_error();
                    if (status == RANKRUN_INVALID && error.find("is a fork of rank") != error.npos)
                      return;
                    wrong += std::to_string(status) + " " + error + "\n";
                  };
                  check(rankrun_all_reduce(nullptr, &tensor, nullptr, 1000, nullptr));
                  check(rankrun_barrier(nullptr, 1000, nullptr));
                  check(rankrun_init(nullptr));
                  if (rankrun_destroy(nullptr) != RANKRUN_OK) wrong += "destroy failed\n";
                  check(rankrun_barrier(nullptr, 1000, nullptr));
                  return wrong;
                });
                return text + SumOf(world);
              }),
      Each("2 of 2"));
}

std::string UseAndEnd(std::unique_ptr<Store> store) {
  std::string wrong = WrongErrors(
      {[&] { store->Set("k", "of a child"); }, [&] { store->Get("k"); },
       [&] { store->Add("n", 1); }, [&] { store->Check({"k"}); }, [&] { store->Wait({"k"}); },
       [&] { store->Barrier("b", 1); }, [&] { store->DeleteKey("k"); },
       [&] { store->MultiGet({"k"}); }, [&] { store->MultiSet({"k"}, {"v"}); },
       [&] { store->QueuePop("q"); }, [&] { store->NumKeys(); }, [&] { store->Clone(); }});
  store.reset();
  return wrong;
}

TEST(ForkOfARankTest, AChildCannotUseStoresAndMayDestroyThem) {
  test::TempFolder folder;
  using MakeStore = std::function<std::unique_ptr<Store>()>;
  const std::vector<MakeStore> makers = {
      [] { return std::make_unique<TcpStore>(TcpStoreOptions{.port = 0, .is_server = true}); },
      [] {
        return std::make_unique<TcpStore>(
            TcpStoreOptions{.port = 0, .is_server = true, .multi_tenant = true});
      },
      [] { return std::make_unique<HashStore>(); },
      [] { return std::make_unique<PrefixStore>("p", std::make_shared<HashStore>()); },
      [&] { return std::make_unique<FileStore>(folder.Path("store"), "run", test::kLong, 1); },
  };
  for (const MakeStore& make : makers) {
    ChildProcess parent([&] {  // has threads
      std::unique_ptr<Store> store = make();
      store->Set("k", "v");
      // Waits in a call at the forks.
      std::unique_ptr<Store> clone = store->Clone();
      std::jthread waiter([&] { clone->Wait({"end"}, std::chrono::hours(1)); });
      std::string wrong;
      for (int i = 0; i < 5; ++i) {
        wrong += InFork([&] {
          std::string text = UseAndEnd(std::move(clone));
          return text + UseAndEnd(std::move(store));
        });
      }
      store->Set("end", "");
      waiter.join();
      return wrong + store->Get("k");
    });
    EXPECT_EQ(parent.Text(), "v") << &make - makers.data();
  }
}

TEST(ForkOfARankTest, AFutureOfTheParentEndsInTheParentOnly) {
  ChildProcess parent([] {
    std::optional<Promise<int>> promise(std::in_place);
    Future<int> future = promise->future();
    std::jthread waiter([&] { future.Wait(); });
    std::string wrong = InFork([&] {
      std::string text = WrongErrors({[&] { future.Wait(); }, [&] { future.done(); },
                                      [&] { future.Then([](const Future<int>&) {}); }});
      promise.reset();
      return text;
    });
    promise->SetValue(3);
    waiter.join();
    return wrong + std::to_string(future.Wait());
  });
  EXPECT_EQ(parent.Text(), "3");
}

TEST(ForkOfARankTest, AChildHasNoRpc) {
  for (const char* backend : {"TENSORPIPE", "PROCESS_GROUP"}) {
    auto texts = OnRanks(2, [&](int rank) {
      rankrun::rpc::RegisterMethod("echo", [](const rankrun::rpc::WorkerInfo&,
                                              const rankrun::rpc::Payload& p) { return p; });
      rankrun::rpc::RegisterMaker(
          "make", [](const rankrun::rpc::WorkerInfo&, const rankrun::rpc::Payload&) {
            return rankrun::rpc::OwnedValue{
                5, [](const std::any&) { return rankrun::rpc::Payload{"five"}; }};
          });
      rankrun::rpc::Options options;
      options.backend = backend;
      rankrun::rpc::Init("w" + std::to_string(rank), options);
      auto echo = [&] { return rankrun::rpc::RpcSync(1 - rank, "echo", {"a"}).bytes; };
      std::optional<rankrun::rpc::Reference> value = rankrun::rpc::Remote(1 - rank, "make", {});
      std::string text = echo();
      text += InFork([&] {
        std::string wrong =
            WrongErrors({[&] { echo(); }, [&] { rankrun::rpc::RpcAsync(1 - rank, "echo", {"b"}); },
                         [] { rankrun::rpc::GetWorkerInfo(); }, [] { rankrun::rpc::Shutdown(); },
                         [&] { value->ToHere(); }});
        value.reset();  // ends no hold of the parent
        return wrong + (rankrun::rpc::Initialized() ? "initialized" : "");
      });
      text += value->ToHere().bytes + echo();
      value.reset();
      rankrun::rpc::Shutdown();
      return text;
    });
    EXPECT_THAT(texts, Each("afivea")) << backend;
  }
}

}  // namespace
}  // namespace rankrun::comm

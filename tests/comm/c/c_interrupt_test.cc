// Ends of waiting calls by the hook of the program.

#include <gmock/gmock.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/c/rpc.h>
#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>

#include "base/interruptible_call.h"
#include "base/status/activity.h"
#include "base/status/status_page.h"
#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using test::WaitFor;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kInterrupted = "interrupted by the program";
constexpr int64_t kUsual = RANKRUN_DEFAULT_TIMEOUT;

// Far above the documented 50 ms, because the machine may be loaded, and far below the time-outs.
constexpr milliseconds kSoon{10000};

// Ends a call when it is asked for the second time, so that the first answer is used, too.
int EndSecond(void* asked) { return ++*static_cast<std::atomic<int>*>(asked) >= 2 ? 1 : 0; }

int GoOn(void* asked) { return ++*static_cast<std::atomic<int>*>(asked), 0; }

// Returns the status and the text of a call that EndSecond ends.
std::string Interrupted(const std::function<rankrun_status()>& call) {
  std::atomic<int> asked = 0;
  rankrun_set_interrupt_hook(EndSecond, &asked);
  const TimePoint began = MonotonicClock().Now();
  const rankrun_status status = call();
  const Duration took = MonotonicClock().Now() - began;
  rankrun_set_interrupt_hook(nullptr, nullptr);
  std::string text = std::to_string(status) + ": ";
  if (took < milliseconds(90)) text += "EARLY ";
  if (took > kSoon) text += "LATE ";
  if (asked != 2) text += "asked " + std::to_string(asked) + " times ";
  return text + rankrun_last_error();
}

struct CInterruptTest : testing::TestWithParam<const char*> {
  // Interrupts a call of rank 0, to which rank 1 comes only afterwards. Returns rank 0's text, and
  // the errors of both ranks' `later`.
  static std::vector<std::string> OfRank0(
      const std::function<rankrun_status()>& call,
      const std::function<void(ProcessGroup& world)>& later = [](auto& world) {
        world.Barrier();
      }) {
    InSharedMemory<std::atomic<bool>> is_over;
    return OnRanks(2, [&](int rank) {
      SetHostFor(GetParam(), rank);
      ProcessGroup& world = Init({.backend = GetParam()});
      std::string text;
      if (rank == 0) {
        text = Interrupted(call) + "\n";
        *is_over = true;
      } else {
        EXPECT_TRUE(WaitFor([&] { return is_over->load(); }));
      }
      text += ErrorOf([&] { later(world); });
      Destroy();
      return text;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Backends, CInterruptTest,
                         testing::Values("shm", "tcp", "hierarchical", "gloo"), NameOfBackend);

TEST_P(CInterruptTest, ACollectiveEndsAndTheOtherRankHearsOfIt) {
  auto barrier = [] { return rankrun_barrier(nullptr, kUsual, nullptr); };
  EXPECT_THAT(OfRank0(barrier),
              ElementsAre(AllOf(StartsWith("10: Barrier #1"), HasSubstr(kInterrupted),
                                HasSubstr("DistBackendError: Barrier #2")),
                          AllOf(HasSubstr("rank 0"), HasSubstr(kInterrupted))));
}

TEST_P(CInterruptTest, AMessageEndsAndTheOtherRankHearsOfIt) {
  std::vector<float> data(10000);
  rankrun_tensor tensor{};
  tensor.data = data.data();
  tensor.count = data.size();
  auto receive_from = [&](int source) {
    return OfRank0([&] { return rankrun_recv(nullptr, &tensor, source, 3, kUsual, nullptr); });
  };
  EXPECT_THAT(receive_from(1), ElementsAre(AllOf(StartsWith("10: Recv"), HasSubstr(kInterrupted),
                                                 HasSubstr("DistBackendError: Barrier")),
                                           AllOf(HasSubstr("rank 0"), HasSubstr(kInterrupted))));
  EXPECT_THAT(receive_from(0).at(0), AllOf(StartsWith("10: Recv"), HasSubstr(kInterrupted)));
}

// The group's thread may have begun the operation, which then continues. Otherwise the wait carries
// it out, if the backend asks the hook, and ends it.
TEST_P(CInterruptTest, AWaitForWorkEnds) {
  rankrun_work* work = nullptr;
  auto wait = [&] {
    EXPECT_EQ(rankrun_barrier(nullptr, kUsual, &work), RANKRUN_OK) << rankrun_last_error();
    return rankrun_work_wait(work);
  };
  auto wait_again = [&](ProcessGroup& world) {
    if (world.global_rank() == 1) return world.Barrier(), void();
    int done = 0;
    const rankrun_status ended = rankrun_work_wait_for(work, 60'000, &done);
    EXPECT_TRUE(done == 1 || ended != RANKRUN_OK);
    rankrun_work_release(work);
  };
  const std::vector<std::string> texts = OfRank0(wait, wait_again);
  const auto of_the_wait = HasSubstr("operation #1 was interrupted by the program; it goes on");
  const auto of_the_operation =
      AllOf(HasSubstr("Barrier #1 of the world"), HasSubstr(kInterrupted));
  const bool goes_on = texts.at(1) == "no error";
  EXPECT_THAT(texts.at(0), StartsWith("10: "));
  if (goes_on) {
    EXPECT_THAT(texts.at(0), of_the_wait);
  } else {
    EXPECT_STRNE(GetParam(), "gloo");
    EXPECT_THAT(texts.at(0), of_the_operation);
    EXPECT_THAT(texts.at(1), AllOf(HasSubstr("rank 0"), HasSubstr(kInterrupted)));
  }
}

TEST_P(CInterruptTest, AWaitWithALimitEndsAndTheOperationGoesOn) {
  rankrun_work* work = nullptr;
  int done = 0;
  auto wait = [&] {
    EXPECT_EQ(rankrun_barrier(nullptr, kUsual, &work), RANKRUN_OK) << rankrun_last_error();
    return rankrun_work_wait_for(work, 60'000, &done);
  };
  auto wait_again = [&](ProcessGroup& world) {
    if (world.global_rank() == 1) return world.Barrier(), void();
    EXPECT_EQ(rankrun_work_wait_for(work, 60'000, &done), RANKRUN_OK) << rankrun_last_error();
    EXPECT_EQ(done, 1);
    rankrun_work_release(work);
  };
  EXPECT_THAT(OfRank0(wait, wait_again),
              ElementsAre("10: the wait for operation #1 was interrupted by the program; it goes "
                          "on\nno error",
                          "no error"));
}

TEST_P(CInterruptTest, AMonitoredBarrierAndAMissingGroupEndOnAllRanks) {
  auto heard = HasSubstr("rank 0 was interrupted by the program");
  EXPECT_THAT(OfRank0([] { return rankrun_monitored_barrier(nullptr, 0, kUsual); },
                      [](ProcessGroup& world) {
                        if (world.global_rank() == 1) world.MonitoredBarrier();
                      }),
              ElementsAre(AllOf(StartsWith("10: MonitoredBarrier"), HasSubstr(kInterrupted)),
                          AllOf(StartsWith("Dist"), heard)));
  EXPECT_THAT(OfRank0(
                  [] {
                    rankrun_group* group = nullptr;
                    return rankrun_new_group(nullptr, &group);
                  },
                  [](ProcessGroup& world) {
                    if (world.global_rank() == 1) NewGroup({});
                  }),
              ElementsAre(AllOf(StartsWith("10: "), HasSubstr(kInterrupted)),
                          AllOf(StartsWith("Dist"), heard)));
}

TEST_P(CInterruptTest, DestroyEndsTheCallsUnderWay) {
  EXPECT_THAT(OfRank0(
                  [] {
                    rankrun_work* work = nullptr;
                    EXPECT_EQ(rankrun_barrier(nullptr, kUsual, &work), RANKRUN_OK);
                    EXPECT_EQ(rankrun_destroy(nullptr), RANKRUN_OK) << rankrun_last_error();
                    const rankrun_status status = rankrun_work_wait(work);
                    rankrun_work_release(work);
                    return status;
                  },
                  [](ProcessGroup& world) {
                    if (rankrun_initialized() != 0) world.Barrier();
                  })
                  .at(1),
              AllOf(StartsWith("Dist"), HasSubstr("rank 0 was interrupted by the program")));
}

// Otherwise a rank whose calls a hook can end would hang unseen.
TEST(CInterruptedHangTest, AWaitThatIsAskedForLooksAsLongAsItIs) {
  auto page = *StatusPage::Create();
  InSharedMemory<std::atomic<bool>> is_over;
  OnRanks(2, [&](int rank) -> std::string {
    if (rank == 0) UsePage(page);
    ProcessGroup& world = Init();
    std::atomic<int> asked = 0;
    rankrun_set_interrupt_hook(GoOn, &asked);
    if (rank == 1) {
      EXPECT_TRUE(WaitFor([&] { return is_over->load(); }));
    }
    std::jthread watch;
    if (rank == 0) {
      watch = std::jthread([&] {
        auto longest = [&] {
          Duration longest{};
          for (const GroupActivity& group : ReadGroups(page)) {
            longest = std::max(longest, group.awaited_for());
          }
          return longest;
        };
        EXPECT_TRUE(WaitFor([&] { return longest() > 4 * InterruptibleCall::kPause; }));
        *is_over = true;
      });
    }
    EXPECT_EQ(rankrun_barrier(nullptr, kUsual, nullptr), RANKRUN_OK) << rankrun_last_error();
    rankrun_set_interrupt_hook(nullptr, nullptr);
    static_cast<void>(world);
    watch = {};
    Destroy();
    return "";
  });
}

TEST(CInterruptedInitTest, ARankThatWaitsForTheOthersEnds) {
  ServerProcess server;
  ChildProcess rank([&] {
    SetPlace(0, 2, server.port());
    return Interrupted([] { return rankrun_init(nullptr); });
  });
  EXPECT_THAT(rank.Text(), AllOf(StartsWith("10: Init"), HasSubstr(kInterrupted)));
}

// Returns the texts of interrupted waits, and whether the store is usable after them.
std::string WaitsIn(rankrun_store* store) {
  const char* key = "never";
  rankrun_bytes* value = nullptr;
  std::string text = Interrupted([&] { return rankrun_store_get(store, key, kUsual, &value); });
  text += "\n" + Interrupted([&] { return rankrun_store_wait(store, &key, 1, kUsual); });
  text += "\n" + Interrupted([&] { return rankrun_store_barrier(store, "met", 2, kUsual); });
  EXPECT_EQ(rankrun_store_set(store, "a", "1", 1), RANKRUN_OK) << rankrun_last_error();
  EXPECT_EQ(rankrun_store_get(store, "a", kUsual, &value), RANKRUN_OK) << rankrun_last_error();
  rankrun_bytes_release(value);
  rankrun_store_release(store);
  return text;
}

TEST(CInterruptedStoreTest, WaitsEndAndTheStoreStaysUsable) {
  test::TempFolder folder;
  ServerProcess server;
  rankrun_tcp_store_options options{};
  options.size = sizeof options;
  ASSERT_EQ(rankrun_tcp_store_options_default(&options), RANKRUN_OK);
  options.port = server.port();
  std::vector<rankrun_store*> stores(4);
  ASSERT_EQ(rankrun_tcp_store(&options, &stores[0]), RANKRUN_OK) << rankrun_last_error();
  ASSERT_EQ(rankrun_hash_store(kUsual, &stores[1]), RANKRUN_OK);
  ASSERT_EQ(rankrun_file_store(folder.Path("file").c_str(), "run", kUsual, &stores[2]), RANKRUN_OK);
  ASSERT_EQ(rankrun_prefix_store("p", stores[0], &stores[3]), RANKRUN_OK);
  for (size_t i : {3U, 0U, 1U, 2U}) {
    EXPECT_THAT(WaitsIn(stores[i]), AllOf(StartsWith("10: get"), HasSubstr("\n10: wait"),
                                          HasSubstr("\n10: meet at barrier")));
  }
}

TEST(CInterruptedCallTest, ACallThatEndsByItselfIsNotInterrupted) {
  std::atomic<int> asked = 0;
  ASSERT_EQ(rankrun_set_interrupt_hook(GoOn, &asked), RANKRUN_OK);
  rankrun_store* store = nullptr;
  ASSERT_EQ(rankrun_hash_store(kUsual, &store), RANKRUN_OK);
  rankrun_bytes* value = nullptr;
  EXPECT_EQ(rankrun_store_get(store, "never", 120, &value), RANKRUN_STORE);
  EXPECT_GE(asked.load(), 1);
  rankrun_set_interrupt_hook(nullptr, nullptr);
  asked = 0;
  EXPECT_EQ(rankrun_store_get(store, "never", 120, &value), RANKRUN_STORE);
  EXPECT_EQ(asked.load(), 0);
  rankrun_store_release(store);
}

int CallBack(void* store) {
  rankrun_bytes* value = nullptr;
  EXPECT_EQ(rankrun_store_get(static_cast<rankrun_store*>(store), "a", kUsual, &value),
            RANKRUN_INVALID);
  EXPECT_THAT(rankrun_last_error(), HasSubstr("called in the interrupt hook"));
  return 1;
}

TEST(CInterruptedCallTest, ACallInTheHookIsRefused) {
  rankrun_store* store = nullptr;
  ASSERT_EQ(rankrun_hash_store(kUsual, &store), RANKRUN_OK);
  ASSERT_EQ(rankrun_set_interrupt_hook(CallBack, store), RANKRUN_OK);
  rankrun_bytes* value = nullptr;
  EXPECT_EQ(rankrun_store_get(store, "never", kUsual, &value), RANKRUN_INTERRUPTED);
  rankrun_set_interrupt_hook(nullptr, nullptr);
  rankrun_store_release(store);
}

struct CInterruptedRpcTest : testing::Test {
  // Interrupts a call of w0 while w1 carries out its method "wait".
  static std::string OfWorker0(const std::function<rankrun_status()>& call) {
    InSharedMemory<std::atomic<bool>> is_over;
    auto wait = [](const char*, const rankrun_bytes*, rankrun_rpc_reply*, void* over) {
      EXPECT_TRUE(WaitFor([&] { return static_cast<std::atomic<bool>*>(over)->load(); }));
      return 0;
    };
    return OnRanks(2,
                   [&](int rank) -> std::string {
                     EXPECT_EQ(rankrun_rpc_register("wait", wait, &*is_over), RANKRUN_OK);
                     const std::string name = "w" + std::to_string(rank);
                     EXPECT_EQ(rankrun_rpc_init(name.c_str(), nullptr), RANKRUN_OK)
                         << rankrun_last_error();
                     std::string text;
                     if (rank == 0) {
                       text = Interrupted(call);
                       *is_over = true;
                     }
                     rankrun_rpc_shutdown(1, kUsual);
                     return text;
                   })
        .at(0);
  }
};

TEST_F(CInterruptedRpcTest, AWaitForAReplyEnds) {
  EXPECT_THAT(OfWorker0([] {
                rankrun_bytes* result = nullptr;
                return rankrun_rpc_sync("w1", "wait", nullptr, 0, &result);
              }),
              StartsWith("10: "));
}

TEST_F(CInterruptedRpcTest, AShutdownThatWaitsForAWorkerEnds) {
  EXPECT_THAT(OfWorker0([] {
                rankrun_rpc_call* call = rankrun_rpc_async("w1", "wait", nullptr, 0);
                EXPECT_NE(call, nullptr) << rankrun_last_error();
                const rankrun_status status = rankrun_rpc_shutdown(1, kUsual);
                rankrun_rpc_call_release(call);
                return status;
              }),
              StartsWith("10: "));
}

// Interrupted, it ends its processes as after a failure.
TEST(CInterruptedSpawnTest, TheWaitForTheProcessesEnds) {
  auto wait = [](int, void*) {
    for (;;) pause();
    return 0;
  };
  EXPECT_THAT(Interrupted([&] { return rankrun_spawn(wait, nullptr, 2, nullptr); }),
              StartsWith("10: Spawn: the wait for the processes was interrupted by the program"));
}

}  // namespace
}  // namespace rankrun::comm

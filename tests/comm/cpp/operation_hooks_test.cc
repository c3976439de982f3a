// Events of operations: the hooks of a program, and the trace of RANKRUN_TRACE.

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rankrun/diagnosis/operation_hooks.h>
#include <rankrun/distributed.h>
#include <rankrun/objects.h>
#include <rankrun/store.h>

#include "base/mutex.h"
#include "base/trace/trace_reader.h"
#include "base/trace/trace_writer.h"
#include "comm/core/hook_table.h"
#include "comm/core/operation_events.h"
#include "tests/base/support.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::ElementsAre;

// Text of the operations that hooks have seen.
class Seen {
 public:
  OperationCallbacks Callbacks() {
    return {.on_start = [this](const OperationInfo& operation) { Add("begin", operation); },
            .on_end =
                [this](const OperationInfo& operation) {
                  const bool is_in_order = operation.ended >= operation.started;
                  Add(operation.has_succeeded && is_in_order ? "end" : "failed", operation);
                }};
  }
  std::multiset<std::string> Lines() {
    MutexLock lock(mutex_);
    return lines_;
  }
  std::string Text() {
    std::string text;
    for (const std::string& line : Lines()) text += line + "\n";
    return text;
  }

 private:
  void Add(const std::string& what, const OperationInfo& operation) {
    MutexLock lock(mutex_);
    lines_.insert(what + " " + operation.name + " #" + std::to_string(operation.sequence) + " of " +
                  operation.group + ", " + std::to_string(operation.bytes) + " B, peer " +
                  std::to_string(operation.peer));
  }

  Mutex mutex_;
  std::multiset<std::string> lines_ GUARDED_BY(mutex_);
};

TEST(OperationHooksTest, EachCollectiveAndMessageHasABeginAndAnEnd) {
  auto texts = InWorld(2, "shm", [](ProcessGroup& world) {
    Seen seen;
    OperationHooks hooks(seen.Callbacks());
    std::vector<float> values(4);
    world.AllReduce(values);
    world.Broadcast(values, GlobalRank{1}, kAsync).Wait();
    if (world.global_rank() == 0) {
      world.Send(values, GlobalRank{1}, 7);
      world.ISend(values, GlobalRank{1}, 8).Wait();
    } else {
      world.Recv(values, std::nullopt, 7);
      world.IRecv(values, GlobalRank{0}, 8).Wait();
    }
    world.MonitoredBarrier();
    // The end of a posted message may follow its Wait.
    test::WaitFor([&] { return seen.Lines().size() == 10; });
    return seen.Text();
  });
  auto wanted = [](const std::string& message, int peer, bool is_from_any) {
    std::multiset<std::string> lines;
    auto add = [&](const std::string& operation, const std::string& begin_peer,
                   const std::string& end_peer) {
      lines.insert("begin " + operation + begin_peer);
      lines.insert("end " + operation + end_peer);
    };
    const std::string rank = std::to_string(peer);
    add("AllReduce #1 of world, 16 B, peer ", "-1", "-1");
    add("Broadcast #2 of world, 16 B, peer ", "1", "1");
    add(message + " #0 of world, 16 B, peer ", is_from_any ? "-1" : rank, rank);
    add(message + " #0 of world, 16 B, peer ", rank, rank);
    add("MonitoredBarrier #1 of world, 0 B, peer ", "-1", "-1");
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  };
  EXPECT_THAT(texts, ElementsAre(wanted("Send", 1, false), wanted("Recv", 0, true)));
}

TEST(OperationHooksTest, AFailedOperationEndsAsFailed) {
  auto texts = InWorld(1, "shm", [](ProcessGroup& world) {
    Seen seen;
    OperationHooks hooks(seen.Callbacks());
    int value = 0;
    std::string error = ErrorOf([&] {
      world.Recv(Tensor(&value, DType::kInt32, 1), GlobalRank{0}, 0, std::chrono::milliseconds(1));
    });
    return seen.Text() + (error == "no error" ? error : "");
  });
  EXPECT_THAT(texts, ElementsAre("begin Recv #0 of world, 4 B, peer 0\n"
                                 "failed Recv #0 of world, 4 B, peer 0\n"));
}

TEST(OperationHooksTest, EveryWaitForAStoreHasItsKey) {
  HashStore store;
  std::vector<std::string> seen;
  OperationHooks hooks({.on_start = {}, .on_end = [&](const OperationInfo& operation) {
                          seen.push_back(operation.name + " " + operation.key +
                                         (operation.has_succeeded ? "" : " failed"));
                        }});
  store.Set("a", "1");
  store.Get("a");
  store.Wait({"a"});
  store.MultiGet({"a"});
  store.QueuePush("q", "x");
  store.QueuePop("q");
  store.Barrier("b", 1);
  EXPECT_THROW(store.Get("absent", std::chrono::milliseconds(0)), DistStoreError);
  EXPECT_THAT(seen, ElementsAre("StoreGet a", "StoreWait a", "StoreMultiGet a", "StoreQueuePop q",
                                "StoreBarrier b", "StoreGet absent failed"));
}

TEST(OperationHooksTest, SeveralHooksAreCalledUntilTheirEnd) {
  HashStore store;
  store.Set("a", "1");
  int first = 0;
  int second = 0;
  OperationHooks hooks({.on_start = [&](const OperationInfo&) { first += 1; }, .on_end = {}});
  {
    OperationHooks more({.on_start = {}, .on_end = [&](const OperationInfo&) { second += 1; }});
    store.Get("a");
  }
  store.Get("a");
  EXPECT_EQ(first, 2);
  EXPECT_EQ(second, 1);
}

TEST(OperationHooksTest, AHookThatThrowsDoesNotFailTheOperation) {
  HashStore store;
  store.Set("a", "1");
  OperationHooks hooks({.on_start = [](const OperationInfo&) { throw std::runtime_error("no"); },
                        .on_end = [](const OperationInfo&) { throw 1; }});
  EXPECT_EQ(store.Get("a"), "1");
}

// Hooks in the middle of a call by another thread, until Release.
class BlockedHooks {
 public:
  BlockedHooks() {
    store_.Set("a", "1");
    hooks_.emplace(OperationCallbacks{.on_start =
                                          [this](const OperationInfo&) {
                                            is_in_hook_.count_down();
                                            release_.wait();
                                            is_over_ = true;
                                          },
                                      .on_end = {}});
    caller_ = std::jthread([this] { store_.Get("a"); });
    is_in_hook_.wait();
  }

  void Release() { release_.count_down(); }
  // Returns whether the call was over after the end of the hooks.
  bool Destroy() {
    hooks_.reset();
    return is_over_;
  }

 private:
  HashStore store_;
  std::latch is_in_hook_{1}, release_{1};
  std::atomic<bool> is_over_ = false;
  std::optional<OperationHooks> hooks_;
  std::jthread caller_;
};

TEST(OperationHooksTest, TheEndOfHooksWaitsForTheirCalls) {
  BlockedHooks hooks;
  std::latch is_ending(1);
  bool was_over = false;
  std::jthread destroyer([&] {
    is_ending.count_down();
    was_over = hooks.Destroy();
  });
  is_ending.wait();
  hooks.Release();
  destroyer.join();
  EXPECT_TRUE(was_over);
}

TEST(OperationHooksTest, TheEndOfHooksInAForkedProcessWaitsForNoCall) {
  BlockedHooks hooks;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    hooks.Destroy();
    HashStore store;
    store.Set("b", "1");
    store.Get("b");
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  hooks.Release();
}

TEST(OperationHooksTest, AnOperationThatAHookStartsCallsNoHook) {
  HashStore store;
  store.Set("a", "1");
  store.Set("b", "1");
  std::vector<std::string> keys;
  OperationHooks hooks({.on_start =
                            [&](const OperationInfo& operation) {
                              keys.push_back(operation.key);
                              store.Get("b");
                            },
                        .on_end = {}});
  store.Get("a");
  EXPECT_THAT(keys, ElementsAre("a"));
}

TEST(OperationHooksTest, TheFunctionsEndWithTheirHooksThoughAnOperationIsUnderWay) {
  auto value = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = value;
  auto entry = std::make_shared<HookEntry>(OperationCallbacks{
      .on_start = {}, .on_end = [value = std::move(value)](const OperationInfo&) {}});
  AddHooks(entry);
  auto operation = HookedOperation::Start({});
  ASSERT_NE(operation, nullptr);
  EXPECT_FALSE(seen.expired());
  RemoveHooks(entry);
  EXPECT_TRUE(seen.expired());
  operation->End(true, -1);
}

TEST(OperationHooksDeathTest, AHookThatDestroysItsOwnHooksEndsTheProcess) {
  auto destroy = [] {
    HashStore store;
    store.Set("a", "1");
    std::optional<OperationHooks> hooks;
    hooks.emplace(
        OperationCallbacks{.on_start = [&](const OperationInfo&) { hooks.reset(); }, .on_end = {}});
    store.Get("a");
  };
  EXPECT_DEATH(destroy(), "a hook must not destroy its own OperationHooks");
}

// Returns "AllReduce #1 of world, 16 B, peer -1; ..." for all operations.
std::string TextOf(const Trace& trace) {
  std::string text;
  for (const TracedOperation& operation : trace.operations) {
    const auto group = static_cast<size_t>(operation.group);
    text += std::string(NameOfTraced(operation.kind)) + " #" + std::to_string(operation.number) +
            " of " + (operation.group < 0 ? operation.key : trace.groups[group].name) + ", " +
            std::to_string(operation.bytes) + " B, peer " + std::to_string(operation.peer) +
            (operation.is_finished ? "; " : " under way; ");
  }
  return text;
}

struct TraceOfRanksTest : testing::Test {
  TraceOfRanksTest() {
    std::string name = testing::TempDir() + "trace_of_ranks-XXXXXX";
    folder = mkdtemp(name.data());
  }
  ~TraceOfRanksTest() override { fs::remove_all(folder); }

  // Returns the trace of each of two ranks.
  std::vector<std::string> Traced(const std::function<void(ProcessGroup&)>& body) const {
    auto texts = OnRanks(2, [&](int) {
      setenv("RANKRUN_TRACE", folder.c_str(), 1);
      setenv("TORCHELASTIC_RUN_ID", "job", 1);
      setenv("TORCHELASTIC_RESTART_COUNT", "2", 1);
      body(Init({.timeout = std::chrono::seconds(60), .backend = "shm"}));
      Destroy();
      return std::string();
    });
    EXPECT_THAT(texts, Each(""));
    std::vector<std::string> traces;
    for (int rank : {0, 1}) {
      auto trace = ReadTrace(TracePath(folder, {.rank = rank, .attempt = 2, .run_id = "job"}));
      traces.push_back(trace ? TextOf(*trace) : trace.error().message);
    }
    return traces;
  }

  std::string folder;
};

TEST_F(TraceOfRanksTest, TheFileHasEachOperationOfARank) {
  auto traces = Traced([](ProcessGroup& world) {
    std::vector<float> values(4);
    world.AllReduce(values);
    ProcessGroup& group = NewGroup({.description = "pair"});
    group.Barrier();
    if (world.global_rank() == 0) {
      world.Send(values, GlobalRank{1}, 7);
    } else {
      world.Recv(values, std::nullopt, 7);
    }
    HashStore store;
    store.Set("key", "");
    store.Get("key");
  });
  auto wanted = [](const std::string& message) {
    return "AllReduce #1 of world, 16 B, peer -1; Barrier #1 of pair, 0 B, peer -1; " + message +
           "; StoreGet #0 of key, 0 B, peer -1; ";
  };
  EXPECT_THAT(traces, ElementsAre(wanted("Send #0 of world, 16 B, peer 1"),
                                  wanted("Recv #0 of world, 16 B, peer 0")));
}

TEST_F(TraceOfRanksTest, AGivenRankCountsMoreThanRANK) {
  auto texts = OnRanks(1, [&](int) {
    setenv("RANKRUN_TRACE", folder.c_str(), 1);
    setenv("TORCHELASTIC_RUN_ID", "job", 1);
    setenv("RANK", "7", 1);
    const OperationEvents events("world", "", 4, 3);
    return std::string();
  });
  EXPECT_THAT(texts, Each(""));
  EXPECT_TRUE(ReadTraceOwner(TracePath(folder, {.rank = 3, .attempt = 0, .run_id = "job"})));
}

TEST_F(TraceOfRanksTest, AForkedProcessDoesNotWriteToIt) {
  auto traces = Traced([](ProcessGroup& world) {
    world.Barrier();
    const pid_t child = fork();
    if (child == 0) {
      HashStore store;
      store.Set("key", "");
      store.Get("key");
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  });
  EXPECT_THAT(traces, Each("Barrier #1 of world, 0 B, peer -1; "));
}

}  // namespace
}  // namespace rankrun::comm

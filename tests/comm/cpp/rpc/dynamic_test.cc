// Groups of RPC that workers join and leave.

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/rpc.h>
#include <rankrun/rpc/backend_options.h>
#include <rankrun/store.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using rpc::Payload;
using rpc::WorkerInfo;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::MatchesRegex;

std::string NameOf(int id) { return "w" + std::to_string(id); }

Payload Echo(const WorkerInfo& caller, const Payload& arguments) {
  return {caller.name + ":" + arguments.bytes};
}

void JoinRpcAs(const std::string& name, int rank = -1) {
  rpc::Init(name, {.rank = rank, .is_dynamic = true});
}

// Returns "w0 w2".
std::string Names() {
  std::string names;
  for (const WorkerInfo& each : rpc::GetWorkerInfos()) {
    names += (names.empty() ? "" : " ") + each.name;
  }
  return names;
}

// Store in which the processes of a test meet.
std::unique_ptr<TcpStore> Meeting() {
  auto port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")));
  return std::make_unique<TcpStore>(TcpStoreOptions{.port = port});
}

// Waits until the workers are these.
bool AwaitNames(const std::string& names) {
  TimePoint deadline = MonotonicClock().Now() + milliseconds(kLoadedMs);
  while (Names() != names) {
    if (MonotonicClock().Now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(RpcDynamicTest, WorkersJoinOneByOneAndCallEachOther) {
  auto texts = OnRanks(3, [](int rank) {
    rpc::RegisterMethod("echo", Echo);
    auto meeting = Meeting();
    if (rank > 0) meeting->Wait({"joined/" + std::to_string(rank - 1)});
    JoinRpcAs(NameOf(rank));
    std::string text = Names() + "; ";
    meeting->Set("joined/" + std::to_string(rank), "");
    meeting->Barrier("all", 3);
    text += Names();
    for (int id = 0; id < 3; ++id) {
      text += " " + rpc::RpcSync(id, "echo", {"hi"}).bytes;
    }
    meeting->Barrier("called", 3);
    rpc::Shutdown();
    return text;
  });
  EXPECT_EQ(texts[0], "w0; w0 w1 w2 w0:hi w0:hi w0:hi");
  EXPECT_EQ(texts[1], "w0 w1; w0 w1 w2 w1:hi w1:hi w1:hi");
  EXPECT_EQ(texts[2], "w0 w1 w2; w0 w1 w2 w2:hi w2:hi w2:hi");
}

// Joins, calls all workers, and leaves. Those that leave meanwhile may not answer.
std::string Visit(int rank) {
  JoinRpcAs(NameOf(rank), rank);
  std::string text = rpc::RpcSync("w0", "echo", {"x"}).bytes;
  for (const WorkerInfo& other : rpc::GetWorkerInfos()) {
    try {
      if (rpc::RpcSync(other, "echo", {"x"}).bytes != text) text += " " + other.name;
    } catch (const DistError&) {
    }
  }
  rpc::Shutdown();
  return text;
}

// 105 workers come and go beside one that stays.
TEST(RpcDynamicTest, EightWorkersJoinAndLeaveManyTimes) {
  constexpr int kTimes = 15;
  auto texts = OnRanks(8, [](int rank) {
    rpc::RegisterMethod("echo", Echo);
    auto meeting = Meeting();
    if (rank == 0) {
      JoinRpcAs(NameOf(0), 0);
      meeting->Set("open", "");
      while (meeting->Add("done", 0) < 7) std::this_thread::yield();
      std::string text = AwaitNames("w0") ? "good" : "left: " + Names();
      rpc::Shutdown();
      for (const std::string& key : meeting->ListKeys()) {
        bool is_left = key.starts_with("rankrun/") && !key.ends_with("/members");
        if (is_left) text += "; left: " + key;
      }
      for (int version = 0; version < 1000; ++version) {
        std::string inbox = "rankrun/attempt_0/rpc/inbox_" + std::to_string(version);
        if (meeting->QueueLength(inbox) > 0) text += "; left: " + inbox;
      }
      return text;
    }
    meeting->Wait({"open"});
    std::string text = "good";
    for (int i = 0; i < kTimes && text == "good"; ++i) {
      std::string visited;
      std::string error = ErrorOf([&] { visited = Visit(rank); });
      text = error != "no error" ? error : visited == NameOf(rank) + ":x" ? "good" : visited;
    }
    meeting->Add("done", 1);
    return text;
  });
  EXPECT_THAT(texts, Each("good"));
}

TEST(RpcDynamicTest, NamesAndIdsAreThoseOfOneWorker) {
  auto texts = OnRanks(2, [](int rank) {
    auto meeting = Meeting();
    if (rank == 0) {
      JoinRpcAs("a", 7);
      meeting->Set("open", "");
      meeting->Wait({"over"});
      rpc::Shutdown();
      return std::string();
    }
    meeting->Wait({"open"});
    std::string text = ErrorOf([] { JoinRpcAs("a"); }) + "; " + ErrorOf([] { JoinRpcAs("b", 7); }) +
                       "; " + ErrorOf([] { JoinRpcAs("b c"); }) + "; ";
    bool is_refused = ErrorOf([] { JoinRpcAs("caf\xe9"); }).starts_with("DistError: the name of");
    text += is_refused ? "refused" : "joined";
    JoinRpcAs("b");
    text += "; " + std::to_string(rpc::GetWorkerInfo().id);
    rpc::Shutdown();
    meeting->Set("over", "");
    return text;
  });
  EXPECT_EQ(texts[1],
            "DistError: workers 7 and 0 have the name a: want different names; "
            "DistError: workers a and b have the id 7: want different ids; "
            "DistError: the name of worker 0 is \"b c\": want 1 to 127 letters, digits, '-', '_' "
            "or ':'; refused; 0");
}

TEST(RpcDynamicTest, AKilledWorkerIsForgottenAndItsNameIsFree) {
  auto texts = OnRanks(3, [](int rank) -> std::string {
    rpc::RegisterMethod("echo", Echo);
    rpc::RegisterMethod("die", [](const WorkerInfo&, const Payload&) -> Payload {
      kill(getpid(), SIGKILL);
      return {};
    });
    auto meeting = Meeting();
    if (rank == 1) {
      meeting->Wait({"open"});
      JoinRpcAs("b", 1);
      meeting->Set("joined", "");
      pause();
    }
    if (rank == 2) {
      meeting->Wait({"dead"});
      JoinRpcAs("b", 1);
      std::string text = rpc::RpcSync("a", "echo", {"again"}).bytes;
      rpc::Shutdown();
      meeting->Set("over", "");
      return text;
    }
    JoinRpcAs("a", 0);
    meeting->Set("open", "");
    meeting->Wait({"joined"});
    std::string text = ErrorOf([] { rpc::RpcSync("b", "die"); });
    text += AwaitNames("a") ? "; a" : "; not forgotten";
    meeting->Set("dead", "");
    meeting->Wait({"over"});
    text += AwaitNames("a") ? "; a" : "; not forgotten";
    rpc::Shutdown();
    return text;
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("DistNetworkError: call of die on worker b: lost worker b"),
                              HasSubstr("; a; a")));
  EXPECT_EQ(texts[2], "b:again");
}

// Waits until a process has closed its descriptors, though its parent has not waited for it:
// all of its threads but the first have ended, and that one is a zombie.
void AwaitDead(pid_t pid) {
  for (;;) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::ostringstream all;
    all << status.rdbuf();  // throws nothing if the process ends meanwhile
    std::string text = all.str();
    auto has = [&](const char* line) { return text.find(line) != std::string::npos; };
    if (text.empty() || (has("State:\tZ") && has("Threads:\t1\n"))) return;
    std::this_thread::yield();
  }
}

TEST(RpcDynamicTest, WorkersThatDiedAloneDelayNobody) {
  auto texts = OnRanks(3, [](int rank) -> std::string {
    rpc::RegisterMethod("echo", Echo);
    auto meeting = Meeting();
    if (rank < 2) {
      JoinRpcAs(NameOf(rank), rank);
      meeting->Set("pid/" + std::to_string(rank), std::to_string(getpid()));
      for (;;) pause();
    }
    std::vector<pid_t> pids;
    for (const char* key : {"pid/0", "pid/1"}) {
      auto text = meeting->Get(key);
      pids.push_back(std::stoi(std::string(text.begin(), text.end())));
    }
    for (pid_t pid : pids) kill(pid, SIGSTOP);  // neither notices the death of the other one
    for (pid_t pid : pids) kill(pid, SIGKILL);
    for (pid_t pid : pids) AwaitDead(pid);
    TimePoint begin = MonotonicClock().Now();
    JoinRpcAs("w0", 0);
    bool is_quick = MonotonicClock().Now() - begin < std::chrono::seconds(10);
    std::string text = Names() + (is_quick ? "" : " slow");
    text += " " + rpc::RpcSync("w0", "echo", {"x"}).bytes;
    rpc::Shutdown();
    return text;
  });
  EXPECT_EQ(texts[2], "w0 w0:x");
}

// The next worker of an id has values of its own.
TEST(RpcDynamicTest, AReferenceToAWorkerThatHasLeftIsToNoOther) {
  auto texts = OnRanks(3, [](int rank) -> std::string {
    rpc::RegisterMethod("make", [](const WorkerInfo&, const Payload& text) { return text; });
    auto meeting = Meeting();
    if (rank > 0) {
      meeting->Wait({rank == 1 ? "open" : "left"});
      JoinRpcAs("b", 1);
      meeting->Set("joined/" + std::to_string(rank), "");
      meeting->Wait({rank == 1 ? "made" : "over"});
      rpc::Shutdown();
      if (rank == 1) meeting->Set("left", "");
      return "";
    }
    JoinRpcAs("a", 0);
    meeting->Set("open", "");
    meeting->Wait({"joined/1"});
    rpc::Reference value = rpc::Remote("b", "make", {"of the first"});
    std::string text = value.ToHere().bytes + "; ";
    meeting->Set("made", "");
    meeting->Wait({"joined/2"});
    rpc::Reference other = rpc::Remote("b", "make", {"of the second"});
    text += other.ToHere().bytes + "; " + ErrorOf([&] { value.ToHere(); });
    value = {};
    text += "; " + other.ToHere().bytes;
    meeting->Set("over", "");
    rpc::Shutdown();
    return text;
  });
  EXPECT_THAT(texts[0], AllOf(HasSubstr("of the first; of the second; DistError: "),
                              HasSubstr("; of the second")));
}

TEST(RpcDynamicTest, WithoutAStoreNobodyJoins) {
  ChildProcess child([] {
    unsetenv("TORCHELASTIC_USE_AGENT_STORE");
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    setenv("MASTER_PORT", "29500", 1);
    return ErrorOf([] { JoinRpcAs("a"); });
  });
  EXPECT_THAT(child.Text(), HasSubstr("want one in the options"));
}

TEST(RpcDynamicTest, AnInitMethodIsRefused) {
  ChildProcess child([] {
    auto options = std::make_shared<rpc::TensorPipeRpcBackendOptions>();
    options->init_method = "tcp://127.0.0.1:1";
    return ErrorOf([&] { rpc::Init("a", {.backend_options = options, .is_dynamic = true}); });
  });
  EXPECT_EQ(child.Text(),
            "DistError: init_method is \"tcp://127.0.0.1:1\": a dynamic group has none: want its "
            "store in Options::store");
}

TEST(RpcDynamicTest, AStoreOfTheProgramServes) {
  ChildProcess child([] {
    auto store = std::make_shared<HashStore>();
    rpc::Init("a", {.store = store, .is_dynamic = true});
    std::string text = Names();
    rpc::Shutdown();
    return text + "; " +
           ErrorOf([&] { rpc::Init("a", {.world_size = 2, .store = store, .is_dynamic = true}); });
  });
  EXPECT_EQ(child.Text(), "a; DistError: world_size is 2: a dynamic group has none");
}

// Workers of both kinds fail at once, whichever comes first.
TEST(RpcDynamicTest, KindsOfGroupsDoNotMixInAStore) {
  auto texts = OnRanks(3, [](int rank) {
    auto meeting = Meeting();
    std::string text;
    if (rank == 2) {
      while (!meeting->Check({"rankrun/attempt_0/rpc/static_0/0/arrived/0"})) {
        std::this_thread::yield();  // until a worker of the static group waits
      }
      text = ErrorOf([] { JoinRpcAs("d"); });
      meeting->Barrier("first", 3);
      JoinRpcAs("d");
      meeting->Barrier("joined", 3);
    } else {
      std::string first = ErrorOf([&] { rpc::Init(NameOf(rank), {.world_size = 3}); });
      text = first;
      meeting->Barrier("first", 3);
      meeting->Barrier("joined", 3);
      text += "\n" + ErrorOf([&] { rpc::Init(NameOf(rank), {.world_size = 3}); });
    }
    meeting->Barrier("second", 3);
    if (rpc::Initialized()) rpc::Shutdown();
    meeting->Barrier("alone", 3);
    if (rank == 2) return text;
    rpc::Init(NameOf(rank), {.world_size = 2});
    rpc::Shutdown();
    JoinRpcAs(NameOf(rank));  // no worker of the static group is left
    rpc::Shutdown();
    return text;
  });
  const std::string mixed =
      "DistError: worker w[01] calls rpc::Init without is_dynamic, but worker d with it, in the "
      "same store: want one kind of group, or another store";
  for (int rank : {0, 1}) {
    EXPECT_THAT(texts[static_cast<size_t>(rank)], MatchesRegex(mixed + "\n" + mixed));
  }
  EXPECT_THAT(texts[2], MatchesRegex(mixed));
}

TEST(RpcDynamicTest, AStaticGroupIsPossibleAfterTheDynamicOne) {
  auto texts = OnRanks(2, [](int rank) {
    auto meeting = Meeting();
    std::string text;
    if (rank == 1) JoinRpcAs("d");
    meeting->Barrier("joined", 2);
    for (int i = 0; i < 2 && rank == 0; ++i) text += ErrorOf([] { rpc::Init("w0"); }) + "\n";
    meeting->Barrier("refused", 2);
    if (rank == 1) rpc::Shutdown();
    meeting->Barrier("left", 2);
    rpc::Init(NameOf(rank));
    text += Names();
    rpc::Shutdown();
    return text;
  });
  const std::string refusal = "DistError: worker w0 calls rpc::Init without is_dynamic, but .*\n";
  EXPECT_THAT(texts[0], MatchesRegex(refusal + refusal + "w0 w1"));
  EXPECT_EQ(texts[1], "w0 w1");
}

}  // namespace
}  // namespace rankrun::comm

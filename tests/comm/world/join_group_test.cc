// Join, loss of a rank, and a second join, over a real store. Each rank is a
// process.

#include "comm/world/join_group.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <vector>

#include "store/clients/tcp_store.h"
#include "tests/comm/joined.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr milliseconds kShort{300};

Result<std::unique_ptr<Group>> JoinOver(uint16_t port, const JoinGroupOptions& options) {
  auto store = store::TcpStore::Connect("127.0.0.1", port);
  if (!store) return std::move(store).error();
  return JoinGroup(*std::move(store), options);
}

// Starts a process for each of `ranks`. It joins, runs `body` and returns the
// text of `body` to the test.
using Body = std::function<std::string(Group&)>;
std::vector<std::unique_ptr<ChildProcess>> Start(
    const std::vector<int>& ranks, const std::function<JoinGroupOptions(int)>& options,
    uint16_t port, const Body& body) {
  std::vector<std::unique_ptr<ChildProcess>> processes;
  for (int r : ranks) {
    processes.push_back(std::make_unique<ChildProcess>([&] {
      auto group = JoinOver(port, options(r));
      return group ? body(**group) : group.error().message;
    }));
  }
  return processes;
}

std::string Sum(Group& group) {
  std::vector<double> value{group.identity().global_rank + 1.0};
  auto ok = group.AllReduce(value, ReduceOp::kSum, {});
  return ok ? std::to_string(static_cast<int>(value[0])) : ok.error().message;
}

TEST(JoinGroupTest, ALoopbackAddressIsOfNoUseToOtherHosts) {
  std::vector<std::string> one{"boot-1/4026531836/0", "boot-1/4026531836/1000"};
  std::vector<std::string> several{"boot-1/4026531836/0", "boot-2/4026531836/0"};
  EXPECT_TRUE(CheckReachable(one, "127.0.0.1"));
  EXPECT_TRUE(CheckReachable(several, "192.0.2.7"));
  auto refused = CheckReachable(several, "127.0.0.1");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, AllOf(HasSubstr("cannot reach this one at 127.0.0.1"),
                                             HasSubstr("want GLOO_SOCKET_IFNAME")));
}

TEST(JoinGroupTest, RanksInProcessesOfTheirOwnMeetOverTheStore) {
  ServerProcess server;
  auto processes = Start(
      {0, 1, 2, 3}, [](int r) { return JoinAs(r, 4); }, server.port(), Sum);
  for (auto& process : processes) EXPECT_EQ(process->Text(), "10");
}

TEST(JoinGroupTest, ARankThatNeverComesIsNamedToTheOthers) {
  ServerProcess server;
  auto options = [&](int r) {
    if (r != 0) return JoinAs(r, 4);
    auto store = store::TcpStore::Connect("127.0.0.1", server.port());
    EXPECT_TRUE((*store)->Get("test/barrier/0/arrived/2", std::chrono::seconds(60)));
    return JoinAs(r, 4, "gloo", kShort);  // the deadline of rank 0 holds for all
  };
  auto processes = Start({0, 2}, options, server.port(), Sum);
  for (auto& process : processes) {
    EXPECT_THAT(process->Text(), AllOf(StartsWith("join the world process group, rank "),
                                       HasSubstr("wait for all ranks: 2 of 4 present after "),
                                       EndsWith("missing: ranks 1, 3")));
  }
}

TEST(JoinGroupTest, AMissingRankZeroIsNamedToo) {
  ServerProcess server;
  auto processes = Start(
      {1}, [](int r) { return JoinAs(r, 2, "gloo", kShort); }, server.port(), Sum);
  EXPECT_THAT(processes[0]->Text(), EndsWith("missing: rank 0"));
}

TEST(JoinGroupTest, AKilledRankIsAnErrorOnAllOthersThatNamesIt) {
  ServerProcess server;
  auto processes = Start(
      {0, 1, 2, 3}, [](int r) { return JoinAs(r, 4); }, server.port(),
      [](Group& group) {
        for (;;) {
          std::vector<float> values(100'000);
          auto ok = group.AllReduce(values, ReduceOp::kSum, {});
          if (!ok) return ok.error().message;
          if (group.identity().global_rank == 2) raise(SIGKILL);
        }
      });
  for (size_t r : {0U, 1U, 3U}) {
    EXPECT_THAT(processes[r]->Text(), AllOf(StartsWith("AllReduce #"), HasSubstr("lost rank 2")));
    EXPECT_EQ(processes[r]->status(), 0) << "the process itself is sound";
  }
}

TEST(JoinGroupTest, ALostPeerIsNoSigpipeAndLeavesTheProgramsHandlingAlone) {
  ServerProcess server;
  auto processes = Start(
      {0, 1}, [](int r) { return JoinAs(r, 2); }, server.port(),
      [](Group& group) {
        if (!group.Barrier({})) return std::string("no barrier");
        if (group.identity().global_rank == 1) raise(SIGKILL);
        std::vector<float> values(1'000'000);
        while (group.Broadcast(values, GlobalRank{0}, {})) {
        }
        sigset_t blocked;
        pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
        sigset_t pending;
        sigpending(&pending);
        return std::string(sigismember(&blocked, SIGPIPE) ? "blocked " : "") +
               (sigismember(&pending, SIGPIPE) ? "pending " : "") + "alive";
      });
  EXPECT_EQ(processes[0]->Text(), "alive");
}

TEST(JoinGroupTest, EveryGenerationIsAGroupOfItsOwn) {
  ServerProcess server;
  std::vector<std::unique_ptr<ChildProcess>> processes;
  for (int r = 0; r < 3; ++r) {
    processes.push_back(std::make_unique<ChildProcess>([&server, r] {
      std::string sums;
      for (int generation = 0; generation < 20; ++generation) {
        JoinGroupOptions options = JoinAs(r, 3);
        options.identity.key_prefix = "world_" + std::to_string(generation);
        auto group = JoinOver(server.port(), options);
        sums += group ? Sum(**group) + " " : group.error().message;
      }
      return sums;
    }));
  }
  for (auto& process : processes) {
    EXPECT_EQ(process->Text(), "6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 ");
  }
}

TEST(JoinGroupTest, ANewAttemptOnAnOldStoreMeetsItsOwnRanksOnly) {
  ServerProcess server;
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto processes = Start(
        {0, 1},
        [attempt](int r) {
          JoinGroupOptions options = JoinAs(r, 2);
          options.identity.key_prefix = "attempt_" + std::to_string(attempt);
          return options;
        },
        server.port(), Sum);
    for (auto& process : processes) EXPECT_EQ(process->Text(), "3");
  }
}

TEST(JoinGroupTest, AfterAFailureTheSameProcessesCanJoinAgain) {
  ServerProcess server;
  std::vector<std::unique_ptr<ChildProcess>> processes;
  for (int r = 0; r < 2; ++r) {
    processes.push_back(std::make_unique<ChildProcess>([&server, r] {
      JoinGroupOptions options = JoinAs(r, 2);
      auto broken = JoinOver(server.port(), options);
      if (!broken) return broken.error().message;
      std::vector<float> values(r == 0 ? 1U : 2U);  // a mistake
      if ((*broken)->AllReduce(values, ReduceOp::kSum, {kShort})) return std::string("no error");
      broken->reset();
      options.identity.key_prefix = "world_1";
      auto group = JoinOver(server.port(), options);
      return group ? Sum(**group) : group.error().message;
    }));
  }
  for (auto& process : processes) EXPECT_EQ(process->Text(), "3");
}

TEST(JoinGroupTest, AMissingInterfaceIsNamed) {
  auto options = JoinAs(0, 1);
  options.network_interface = "none0";
  auto group = JoinGroup(std::make_unique<MemoryStore>(std::make_shared<MemoryKeys>()), options);
  ASSERT_FALSE(group);
  EXPECT_THAT(group.error().message,
              HasSubstr("connect to the other ranks: listen at interface none0 "
                        "(GLOO_SOCKET_IFNAME): No such device"));
}

TEST(JoinGroupTest, AStoreThatDiesIsAnErrorOfTheStore) {
  ServerProcess server;
  auto processes = Start(
      {0, 1}, [](int r) { return JoinAs(r, 2); }, server.port(),
      [&server](Group& group) {
        // The server dies after both ranks have joined.
        if (!group.Barrier({})) return std::string("no barrier");
        if (group.identity().global_rank == 0) server.Kill();
        Result<void> passed;
        while (passed) passed = group.MonitoredBarrier(milliseconds(5'000), true);
        return std::string(passed.error().code == ErrorCode::kProtocol ? "store: " : "other: ") +
               passed.error().message;
      });
  for (auto& process : processes) EXPECT_THAT(process->Text(), StartsWith("store: "));
}

}  // namespace
}  // namespace rankrun::comm

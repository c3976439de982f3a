// The public functions, as a program uses them.

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/comm/worlds.h"
#include "tests/paths.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(DistributedTest, InitMakesTheWorldAndDestroyEndsItAHundredTimes) {
  auto texts = OnRanks(2, [](int) {
    float sum = 0;
    for (int i = 0; i < 100; ++i) {
      ProcessGroup& world = Init();
      std::vector<float> one{1.0F};
      World().AllReduce(one);
      sum += one[0];
      if (!Initialized() || &world != &World()) return std::string("no world");
      Destroy();
      if (Initialized()) return std::string("still a world");
    }
    return std::to_string(static_cast<int>(sum));
  });
  EXPECT_THAT(texts, testing::Each("200"));
}

TEST(DistributedTest, InitTwiceIsAnError) {
  auto texts = OnRanks(1, [](int) {
    Init();
    Init();
    return std::string("no error");
  });
  EXPECT_EQ(texts[0],
            "DistError: Init: there is a world process group already: Destroy() it first");
}

TEST(DistributedTest, WorldBeforeInitIsAnErrorAndDestroyDoesNothing) {
  Destroy();
  EXPECT_FALSE(Initialized());
  EXPECT_THROW(World(), DistError);
}

TEST(DistributedTest, ABadEnvironmentIsAnErrorThatNamesTheVariable) {
  SetPlace(0, 1, 1);
  setenv("WORLD_SIZE", "x", 1);
  try {
    Init();
    FAIL();
  } catch (const DistError& error) {
    EXPECT_EQ(typeid(error), typeid(DistError));
    EXPECT_STREQ(
        error.what(),
        "Init: WORLD_SIZE is \"x\": want a whole number >= 1 (set by rankrun or torchrun)");
  }
}

TEST(DistributedTest, AMissingStoreIsANetworkError) {
  uint16_t port = 0;
  {
    ServerProcess gone;
    port = gone.port();
  }
  SetPlace(0, 1, port);
  try {
    Init({.timeout = milliseconds(200)});
    FAIL();
  } catch (const DistNetworkError& error) {
    EXPECT_THAT(error.what(),
                AllOf(StartsWith("Init: the store, rank 0 of 1: "), HasSubstr("127.0.0.1")));
  }
}

TEST(DistributedTest, AWrongBackendIsAnErrorBeforeAnyWait) {
  ServerProcess server;
  SetPlace(0, 2, server.port());
  try {
    Init({.backend = "none"});
    FAIL();
  } catch (const DistError& error) {
    EXPECT_EQ(typeid(error), typeid(DistError));
    EXPECT_THAT(error.what(), HasSubstr("backend is \"none\": want auto, shm, tcp, hierarchical, "
                                        "gloo, a registered one, or a plug-in "
                                        "librankrun_none.so in " +
                                        test::Library()));
  }
}

TEST(DistributedTest, AMissingRankIsATimeoutErrorThatNamesIt) {
  ServerProcess server;
  SetPlace(0, 2, server.port());
  try {
    Init({.timeout = milliseconds(200)});
    FAIL();
  } catch (const DistTimeoutError& error) {
    EXPECT_THAT(error.what(), EndsWith("missing: rank 1"));
  }
  EXPECT_FALSE(Initialized());
}

TEST(DistributedTest, AnInitThatMissedTheStoreCountsAndOneWithABadOptionDoesNot) {
  auto texts = OnRanks(2, [](int r) {
    std::string port = getenv("MASTER_PORT");
    std::string text;
    if (r == 0) {
      ErrorOf([] { Init({.timeout = milliseconds(0)}); });
      setenv("RANK", "2", 1);
      text = ErrorOf([] { Init(); });
      setenv("RANK", "0", 1);
      setenv("MASTER_PORT", "1", 1);
    }
    text += "; " + ErrorOf([] { Init({.timeout = milliseconds(200)}); });
    setenv("MASTER_PORT", port.c_str(), 1);
    Init().Barrier();
    return text;
  });
  EXPECT_THAT(texts[0], AllOf(StartsWith("DistError: "), HasSubstr("; DistNetworkError: ")));
  EXPECT_THAT(texts[1], StartsWith("; DistTimeoutError: "));
}

TEST(DistributedTest, EveryFunctionOfTheGroupThrowsDistErrorForBadArguments) {
  auto texts = OnRanks(1, [](int) {
    ProcessGroup& world = Init();
    std::vector<double> values(3);
    std::string caught;
    try {
      world.Broadcast(values, GlobalRank{1});
    } catch (const DistError& error) {
      caught += error.what();
    }
    try {
      world.MonitoredBarrier(milliseconds(0));
    } catch (const DistError& error) {
      caught += std::string("; ") + error.what();
    }
    world.Barrier();
    world.MonitoredBarrier();
    return caught + (world.state() == GroupState::kOk ? "; ok" : "; broken");
  });
  EXPECT_EQ(
      texts[0],
      "Broadcast of the world process group, rank 0 of 1: global rank 1 is no member of the group, "
      "whose ranks are 0; MonitoredBarrier: timeout is 0 ms: want at least 1 ms; ok");
}

void AwaitKeyThatEndsWith(const std::string& end) {
  TcpStore store({.port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")))});
  TimePoint limit = MonotonicClock().Now() + std::chrono::seconds(60);
  auto there = [&] {
    auto keys = store.ListKeys();
    return std::any_of(keys.begin(), keys.end(),
                       [&](const auto& key) { return key.ends_with(end); });
  };
  while (!there()) {
    if (MonotonicClock().Now() > limit) throw DistError("no key ends with " + end);
    std::this_thread::yield();
  }
}

// The two ranks call them in different orders; each waits in the store for the
// other.
TEST(DistributedTest, NewGroupAndMonitoredBarrierMayCrossInTwoThreads) {
  auto texts = OnRanks(2, [](int r) {
    ProcessGroup& world = Init({.timeout = std::chrono::seconds(30), .backend = "shm"});
    auto long_time = std::chrono::hours(1);
    auto make = [&] { return ErrorOf([] { NewGroup({}); }, long_time); };
    auto meet = [&] { return ErrorOf([&] { world.MonitoredBarrier(); }, long_time); };
    std::string first;
    std::jthread other([&] { first = r == 0 ? make() : meet(); });
    for (const char* key : {"/meeting/0/count", "/barrier/1/count"}) AwaitKeyThatEndsWith(key);
    std::string second = r == 0 ? meet() : make();
    other.join();
    Destroy();
    return first + ", " + second;
  });
  EXPECT_THAT(texts, testing::Each("no error, no error"));
}

}  // namespace
}  // namespace rankrun::comm

// The public functions, as a program meets them.

#include <gmock/gmock.h>

#include <string>
#include <typeinfo>
#include <vector>

#include <rankrun/distributed.h>

#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(DistributedTest, InitMakesTheWorldAndDestroyEndsItAHundredTimes) {
  const auto texts = OnRanks(2, [](int) {
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
  const auto texts = OnRanks(1, [](int) {
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

TEST(DistributedTest, AStoreThatIsNotThereIsANetworkError) {
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

TEST(DistributedTest, AMissingBackendIsABackendErrorBeforeAnybodyWaits) {
  ServerProcess server;
  SetPlace(0, 2, server.port());
  try {
    Init({.backend = "none"});
    FAIL();
  } catch (const DistBackendError& error) {
    EXPECT_THAT(error.what(), HasSubstr(RANKRUN_LIB_DIR "/librankrun_none.so"));
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

TEST(DistributedTest, EveryFunctionOfTheGroupThrowsDistErrorForBadArguments) {
  const auto texts = OnRanks(1, [](int) {
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

}  // namespace
}  // namespace rankrun::comm

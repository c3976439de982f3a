#include "comm/world/environment.h"

#include <gtest/gtest.h>

#include <map>

namespace rankrun::comm {
namespace {

struct EnvironmentTest : testing::Test {
  Result<Environment> Read(const Given& given = {}) {
    auto get = [this](const char* name) -> const char* {
      auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    };
    return ReadEnvironment(get, given);
  }

  std::string ErrorWith(const std::string& name, const std::string& value) {
    variables[name] = value;
    auto environment = Read();
    if (environment) return "no error";
    EXPECT_EQ(environment.error().code, ErrorCode::kInvalid);
    return environment.error().message;
  }

  std::map<std::string, std::string> variables{
      {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node-0"}, {"MASTER_PORT", "29500"}};
};

TEST_F(EnvironmentTest, TheFourVariablesAreEnough) {
  auto environment = Read();
  ASSERT_TRUE(environment) << environment.error().message;
  EXPECT_EQ(environment->global_rank, 1);
  EXPECT_EQ(environment->world_size, 4);
  EXPECT_EQ(environment->master_addr, "node-0");
  EXPECT_EQ(environment->master_port, 29500);
  EXPECT_EQ(environment->local_world_size, std::nullopt);
  EXPECT_EQ(environment->attempt, 0);
  EXPECT_EQ(environment->network_interface, "");
}

TEST_F(EnvironmentTest, OptionalVariablesAreRead) {
  variables["LOCAL_WORLD_SIZE"] = "2";
  variables["TORCHELASTIC_RESTART_COUNT"] = "3";
  variables["GLOO_SOCKET_IFNAME"] = "eth1,eth2";
  variables["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  auto environment = Read();
  ASSERT_TRUE(environment) << environment.error().message;
  EXPECT_EQ(environment->local_world_size, 2);
  EXPECT_EQ(environment->attempt, 3);
  EXPECT_EQ(environment->network_interface, "eth1,eth2");
  EXPECT_TRUE(environment->agent_serves);
}

TEST_F(EnvironmentTest, TheRanksOfTheHostAreNotCountedForAPartOfTheJob) {
  variables["LOCAL_WORLD_SIZE"] = "2";
  EXPECT_EQ(Read({.global_rank = 1, .world_size = 2})->local_world_size, std::nullopt);
  EXPECT_EQ(Read({.global_rank = 1, .world_size = 4})->local_world_size, 2);
}

TEST_F(EnvironmentTest, TheTimeOfASlowCallIsOneSecondOrGiven) {
  EXPECT_EQ(Read()->slow_call, std::chrono::seconds(1));
  variables["RANKRUN_SLOW_CALL_MS"] = "0";
  EXPECT_EQ(Read()->slow_call, std::chrono::seconds(0));
  EXPECT_EQ(ErrorWith("RANKRUN_SLOW_CALL_MS", "1s"),
            "RANKRUN_SLOW_CALL_MS is \"1s\": want a whole number >= 0");
}

TEST_F(EnvironmentTest, ErrorsNameTheVariableItsValueAndWhatIsWanted) {
  EXPECT_EQ(ErrorWith("WORLD_SIZE", "x"),
            "WORLD_SIZE is \"x\": want a whole number >= 1 (set by rankrun or torchrun)");
}

TEST_F(EnvironmentTest, AnEmptyStringCountsAsUnset) {
  EXPECT_EQ(ErrorWith("RANK", ""),
            "RANK is not set: want a whole number >= 0 (set by rankrun or torchrun)");
}

TEST_F(EnvironmentTest, AnEmptyHostCountsAsUnset) {
  EXPECT_EQ(ErrorWith("MASTER_ADDR", ""),
            "MASTER_ADDR is not set: want the host of the store (set by rankrun or torchrun)");
}

TEST_F(EnvironmentTest, NumbersMustBeWholeAndInRange) {
  for (const char* bad : {"-1", "1.5", "2 ", " 2", "0x2", "99999999999", "1e3"}) {
    EXPECT_EQ(ErrorWith("RANK", bad), "RANK is \"" + std::string(bad) +
                                          "\": want a whole number >= 0 (set by rankrun or "
                                          "torchrun)");
  }
}

TEST_F(EnvironmentTest, ThePortMustBeAPort) {
  for (const char* bad : {"0", "65536", "http"}) {
    EXPECT_EQ(ErrorWith("MASTER_PORT", bad), "MASTER_PORT is \"" + std::string(bad) +
                                                 "\": want a whole number 1..65535 (set by "
                                                 "rankrun or torchrun)");
  }
}

TEST_F(EnvironmentTest, TheRankMustBeBelowTheWorldSize) {
  EXPECT_EQ(ErrorWith("RANK", "4"), "RANK is 4: want less than WORLD_SIZE, which is 4");
}

TEST_F(EnvironmentTest, StrictIsOffOrOnAndNothingElse) {
  EXPECT_FALSE(Read()->is_strict);
  variables["RANKRUN_STRICT"] = "0";
  EXPECT_FALSE(Read()->is_strict);
  variables["RANKRUN_STRICT"] = "1";
  EXPECT_TRUE(Read()->is_strict);
  EXPECT_EQ(ErrorWith("RANKRUN_STRICT", "yes"), "RANKRUN_STRICT is \"yes\": want 0 or 1");
}

TEST_F(EnvironmentTest, AlgorithmsAreCheckedWhenTheyAreRead) {
  EXPECT_EQ(Read()->algorithms, AlgorithmTable());
  variables["RANKRUN_ALGORITHMS"] = "all_reduce.doubling=7";
  EXPECT_EQ(Read()->algorithms.all_reduce_doubling, 7U);
  EXPECT_EQ(ErrorWith("RANKRUN_ALGORITHMS", "reduce.tree=16K"),
            "RANKRUN_ALGORITHMS: reduce.tree is \"16K\"; want a number of bytes");
}

TEST(ListenHostTest, LoopbackWhenAllRanksAreOnThisHost) {
  Environment environment;
  environment.world_size = 4;
  environment.local_world_size = 4;
  EXPECT_EQ(ListenHost(environment, "10.0.0.7"), "127.0.0.1");
}

TEST(ListenHostTest, ElseTheAddressThatReachesTheStore) {
  Environment environment;
  environment.world_size = 4;
  EXPECT_EQ(ListenHost(environment, "127.0.0.1"), "127.0.0.1");
  environment.local_world_size = 2;
  EXPECT_EQ(ListenHost(environment, "10.0.0.7"), "10.0.0.7");
}

}  // namespace
}  // namespace rankrun::comm

#include "comm/world/environment.h"

#include <gtest/gtest.h>

#include <map>

namespace rankrun::comm {
namespace {

struct EnvironmentTest : testing::Test {
  const char* Get(const char* name) const {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  }
  Result<Environment> Read(const Given& given = {}) {
    return ReadEnvironment([this](const char* name) { return Get(name); }, given);
  }
  Result<int> LocalRank(int fallback = -1) {
    return LocalRankIn([this](const char* name) { return Get(name); }, fallback);
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

TEST_F(EnvironmentTest, SeveralMissingVariablesAreNamedTogether) {
  variables.clear();
  EXPECT_EQ(ErrorWith("OTHER", ""),
            "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are not set: want a start by rankrun or "
            "torchrun, or by mpirun or srun with MASTER_ADDR and MASTER_PORT");
  EXPECT_EQ(ErrorWith("WORLD_SIZE", "4").substr(0, 47),
            "RANK, MASTER_ADDR and MASTER_PORT are not set: ");
  variables["PMI_RANK"] = "0";
  EXPECT_EQ(ErrorWith("PMI_SIZE", "4"),
            "MASTER_ADDR and MASTER_PORT are not set: want the host of rank 0, and a port that is "
            "free there");
  EXPECT_TRUE(Read({.address = true}));
}

// Variables of rank 3 of 4, of which two are on its host.
TEST_F(EnvironmentTest, ThePlaceMayBeThatOfMpirunOrSrun) {
  using Variables = std::map<std::string, std::string>;
  const Variables open_mpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}};
  const Variables pmi = {
      {"PMI_RANK", "3"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};
  Variables slurm = {{"SLURM_STEP_ID", "0"},
                     {"SLURM_PROCID", "3"},
                     {"SLURM_LOCALID", "1"},
                     {"SLURM_STEP_NUM_TASKS", "4"},
                     {"SLURM_STEP_NUM_NODES", "2"}};
  Variables slurm_with_pmi = slurm;
  slurm_with_pmi.insert({{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}});
  for (const Variables& theirs : {open_mpi, pmi, slurm, slurm_with_pmi}) {
    variables = theirs;
    variables["MASTER_ADDR"] = "node-0";
    variables["MASTER_PORT"] = "29500";
    auto environment = Read();
    ASSERT_TRUE(environment) << environment.error().message;
    EXPECT_EQ(environment->global_rank, 3);
    EXPECT_EQ(environment->world_size, 4);
    EXPECT_EQ(environment->local_world_size.value_or(2), 2);
    EXPECT_EQ(*LocalRank(), 1);
    variables["RANK"] = "0";  // of rankrun or torchrun
    EXPECT_EQ(Read().error().message,
              "WORLD_SIZE is not set: want a whole number >= 1 (set by rankrun or torchrun)");
    EXPECT_FALSE(LocalRank());
  }
  variables = slurm;
  variables["SLURM_STEP_NUM_NODES"] = "1";
  EXPECT_EQ(Read({.address = true})->local_world_size, 4);
  for (const char* no_step : {"", "4294967291"}) {  // a batch script
    variables["SLURM_STEP_ID"] = no_step;
    EXPECT_FALSE(Read({.address = true}));
  }
}

TEST_F(EnvironmentTest, TheLocalRankMayHaveAFallback) {
  EXPECT_EQ(*LocalRank(5), 5);
  EXPECT_EQ(LocalRank().error().message,
            "LOCAL_RANK is not set: want a whole number >= 0 (set by rankrun or torchrun)");
  variables["LOCAL_RANK"] = "2";
  EXPECT_EQ(*LocalRank(5), 2);
}

TEST_F(EnvironmentTest, AnEmptyHostCountsAsUnset) {
  EXPECT_EQ(ErrorWith("MASTER_ADDR", ""),
            "MASTER_ADDR is not set: want the host of the store (set by rankrun or torchrun)");
}

TEST_F(EnvironmentTest, BracketsOfAnIpv6HostAreNoPartOfIt) {
  variables["MASTER_ADDR"] = "[::1]";
  EXPECT_EQ(Read()->master_addr, "::1");
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

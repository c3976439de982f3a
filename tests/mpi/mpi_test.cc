// The MPI plug-in, in jobs of Open MPI's mpirun.

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/base/support.h"
#include "tests/comm/worlds.h"
#include "tests/free_port.h"
#include "tests/paths.h"
#include "tests/project/command.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

// Returns the line of each rank, without "rank R: ".
std::vector<std::string> UnderMpirun(int ranks, const std::string& test_case) {
  test::TempFolder folder;
  // Open MPI leaves memory behind, which a leak checker would report.
  auto lines = test::LinesOf("ASAN_OPTIONS=detect_leaks=0 RANKRUN_PLUGIN_DIR=" + test::Library() +
                             " mpirun " + "--allow-run-as-root --oversubscribe -n " +
                             std::to_string(ranks) + " " + test::Program("mpi_worker") + " " +
                             test_case + " " + folder.path() + "/meeting 2>&1");
  std::erase_if(lines, [](const auto& line) { return !line.starts_with("rank "); });
  std::sort(lines.begin(), lines.end());
  for (std::string& line : lines) {
    line.erase(0, line.find(": ") + 2);
    if (line.ends_with('\n')) line.pop_back();
  }
  return lines;
}

struct MpiTest : testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, MpiTest, testing::Values(1, 2, 3, 4));

TEST_P(MpiTest, VectorsPass) {
  EXPECT_THAT(UnderMpirun(GetParam(), "vectors"),
              AllOf(testing::SizeIs(GetParam()), Each("passed")));
}

// The process ends without Destroy.
TEST_P(MpiTest, SizesMoveInSeveralMessages) {
  EXPECT_THAT(UnderMpirun(GetParam(), "sum"), AllOf(testing::SizeIs(GetParam()), Each("right")));
}

TEST(MpiJobTest, CallsThatDifferAreListed) {
  EXPECT_THAT(UnderMpirun(2, "mismatch"),
              AllOf(testing::SizeIs(2),
                    Each(AllOf(HasSubstr("rank 0 called AllReduce #1 (10 x float32, sum)"),
                               HasSubstr("rank 1 called AllReduce #1 (20 x float32, sum)")))));
}

TEST(MpiJobTest, ARankThatDoesNotCallIsNamed) {
  auto texts = UnderMpirun(3, "absent");
  ASSERT_THAT(texts, testing::SizeIs(3));
  for (size_t r : {0U, 2U}) EXPECT_THAT(texts[r], HasSubstr("rank 1"));
}

TEST(MpiJobTest, AnAbortEndsTheCallsOfAllRanks) {
  EXPECT_THAT(UnderMpirun(3, "abort"),
              AllOf(testing::SizeIs(3), Each(HasSubstr("rank 1 aborted the group: enough"))));
}

TEST(MpiJobTest, ARankThatComesAfterATimeoutGetsNoResult) {
  EXPECT_THAT(UnderMpirun(3, "late_calls"), AllOf(testing::SizeIs(3), Each("results: ")));
}

TEST(MpiJobTest, GroupsHaveTheirOwnConnections) {
  EXPECT_THAT(UnderMpirun(3, "groups"), ElementsAre("3 0", "3 3", "3 3"));
}

TEST(MpiJobTest, RanksOfMpirunNeedNoVariablesOfTheirOwn) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"}) unsetenv(name);
  unsetenv("MASTER_PORT");
  EXPECT_THAT(UnderMpirun(2, "variables"),
              Each(HasSubstr("MASTER_ADDR and MASTER_PORT are not set: want the host of rank 0")));
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  setenv("MASTER_PORT", std::to_string(test::FreePort()).c_str(), 1);
  EXPECT_THAT(UnderMpirun(2, "variables"), ElementsAre("0 of 2, here 0", "1 of 2, here 1"));
}

TEST(MpiJobTest, AProgramMayHaveStartedMpi) {
  EXPECT_THAT(UnderMpirun(2, "own_mpi"), Each("right"));
}

TEST(MpiJobTest, ARankThatLeavesLateDoesNotDisturbTheOthers) {
  EXPECT_THAT(UnderMpirun(3, "late"), AllOf(testing::SizeIs(3), Each("right")));
}

TEST(MpiJobTest, AProcessMayEndWithACallUnderWay) {
  EXPECT_THAT(UnderMpirun(2, "under_way"), AllOf(testing::SizeIs(2), Each("left")));
}

TEST(MpiJobTest, TheFirstGroupHasAllRanksOfTheLauncher) {
  EXPECT_THAT(UnderMpirun(3, "some"),
              AllOf(testing::SizeIs(3), testing::Contains(HasSubstr(
                                            "OMPI_COMM_WORLD_SIZE is 3, and the group has 2 ranks: "
                                            "want the first group on MPI to have all of them"))));
}

TEST(MpiJobTest, WithoutALauncherItIsRefusedOnAllRanks) {
  auto texts = OnRanks(2, [](int) {
    for (const char* variable :
         {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMI_ID", "TORCHELASTIC_RUN_ID"}) {
      unsetenv(variable);
    }
    return ErrorOf([] { Init({.backend = "mpi"}); });
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("DistError: Init: join the world process group"),
                                HasSubstr("no MPI launcher has started this process, and MPI "
                                          "connects no others: want workers that mpirun or srun "
                                          "--mpi=pmix starts"))));
}

TEST(MpiJobTest, WorkersOfRankrunAreRefused) {
  auto texts = OnRanks(1, [](int) {
    setenv("TORCHELASTIC_RUN_ID", "1", 1);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);  // of an agent that mpirun has started
    return ErrorOf([] { Init({.backend = "mpi"}); });
  });
  EXPECT_THAT(texts, Each("no error"));  // one rank connects to none
  texts = OnRanks(2, [](int) {
    setenv("TORCHELASTIC_RUN_ID", "1", 1);
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    return ErrorOf([] { Init({.backend = "mpi"}); });
  });
  EXPECT_THAT(texts,
              Each(HasSubstr("rankrun or torchrun has started this process, unknown to MPI")));
}

}  // namespace
}  // namespace rankrun::comm

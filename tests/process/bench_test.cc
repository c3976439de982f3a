// rankrun-bench, started by rankrun.

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> Bench(const std::string& ranks, std::vector<std::string> words) {
  std::vector<std::string> arguments{
      "-n", ranks, test::Program("rankrun-bench"), "--iters", "3", "--batches", "2"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  return arguments;
}

TEST(BenchTest, EveryCollectiveIsMeasuredAndRight) {
  std::vector<std::string> arguments =
      Bench("2", {"all", "--max-bytes", "100K", "--factor", "16", "--json"});
  arguments.insert(arguments.begin(), {"--prefix", "none"});
  Job job({.arguments = arguments});
  ASSERT_TRUE(job.Wait(milliseconds(100'000)).value_or(ProcessExit{true, 0}).succeeded())
      << job.Err();
  std::set<std::string> collectives;
  std::istringstream lines(job.Out());
  for (std::string line; std::getline(lines, line);) {
    auto figures = nlohmann::json::parse(line);
    EXPECT_EQ(figures["wrong"], 0) << line;
    EXPECT_EQ(figures["ranks"], 2) << line;
    EXPECT_EQ(figures["calls"], 3) << line;
    EXPECT_GT(figures["us"], 0) << line;
    collectives.insert(figures["collective"]);
  }
  EXPECT_EQ(collectives.size(), 7U);
}

TEST(BenchTest, TableEndsWithAVerdict) {
  Job job({.arguments = Bench("3", {"all_reduce", "--max-bytes", "64", "--dtype", "bfloat16"})});
  ASSERT_TRUE(job.Wait(milliseconds(100'000)).value_or(ProcessExit{true, 0}).succeeded())
      << job.Err();
  EXPECT_THAT(job.Out(), HasSubstr("# all_reduce: 3 ranks"));
  EXPECT_THAT(job.Out(), HasSubstr("# wrong elements: 0 OK"));
}

TEST(BenchTest, BackendThatIsNotThereIsAnError) {
  Job job({.arguments = Bench("2", {"barrier", "--backend", "nonsense"})});
  auto exit = job.Wait(milliseconds(100'000));
  ASSERT_TRUE(exit.has_value());
  EXPECT_FALSE(exit->succeeded());
  EXPECT_THAT(job.Err(), HasSubstr("nonsense"));
}

// The printed table is one that the library reads.
TEST(BenchTest, TuningPrintsATableOfAlgorithms) {
  std::vector<std::string> arguments =
      Bench("4", {"all", "--tune", "--max-bytes", "64K", "--factor", "64", "--json"});
  arguments.insert(arguments.begin(), {"--prefix", "none"});
  Job job({.arguments = arguments});
  ASSERT_TRUE(job.Wait(milliseconds(100'000)).value_or(ProcessExit{true, 0}).succeeded())
      << job.Err();
  std::string last;
  std::istringstream lines(job.Out());
  for (std::string line; std::getline(lines, line);) last = line;
  const std::string table = nlohmann::json::parse(last)["algorithms"];
  for (const char* key : {"all_reduce.doubling=", "all_reduce.halving=", "all_gather.direct_ranks=",
                          "broadcast.tree=", "all_to_all.direct="}) {
    EXPECT_THAT(table, HasSubstr(key));
  }
  Job with_table({.arguments = Bench("4", {"all_reduce", "--max-bytes", "8", "--backend", "tcp"}),
                  .variables = {{"RANKRUN_ALGORITHMS", table}}});
  EXPECT_TRUE(with_table.Wait(milliseconds(100'000)).value_or(ProcessExit{true, 0}).succeeded())
      << with_table.Err();
}

TEST(BenchTest, WrongWordIsSaidAndTheExitCodeIs2) {
  Job job({.arguments = Bench("3", {"all_reduc"})});
  auto exit = job.Wait(milliseconds(100'000));
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(*exit == (ProcessExit{false, 2})) << job.Err();
  EXPECT_THAT(job.Out() + job.Err(), HasSubstr("got \"all_reduc\""));
}

}  // namespace
}  // namespace rankrun::testing

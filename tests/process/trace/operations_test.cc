// The last operations of workers whose attempt has failed.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "base/status/activity.h"
#include "base/status/status_page.h"
#include "tests/base/support.h"
#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string VariableIn(pid_t pid, const std::string& name) {
  std::ifstream environment("/proc/" + std::to_string(pid) + "/environ");
  for (std::string entry; std::getline(environment, entry, '\0');) {
    if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
  }
  return "";
}

// Returns "21 under way": the number of the last call of the worker.
std::string LastCallOf(pid_t worker) {
  const std::string path = VariableIn(worker, "RANKRUN_STATUS_PATH");
  const test::ScopedVariable fd("RANKRUN_STATUS_FD", "-1");
  const test::ScopedVariable named("RANKRUN_STATUS_PATH", path.c_str());
  auto page = StatusPage::FromEnvironment();
  const std::vector<GroupActivity> groups = page ? ReadGroups(*page) : std::vector<GroupActivity>();
  if (groups.size() != 1) return "";
  return std::to_string(groups[0].last.number) + (groups[0].is_under_way ? " under way" : "");
}

// Returns the workers by their ranks. A process in the middle of its exec has no rank yet.
std::map<std::string, pid_t> WorkersByRank(const Job& job) {
  std::map<std::string, pid_t> pids;
  for (pid_t pid : job.Workers(3)) pids[VariableIn(pid, "RANK")] = pid;
  return pids;
}

// Three ranks call AllReduce 20 times. Ranks 0 and 1 wait in the next one, for rank 2, when
// rank 1 is killed.
struct OperationsTest : ::testing::Test {
  void Run(std::vector<std::string> flags) {
    std::vector<std::string> arguments{"-n", "3"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    arguments.insert(arguments.end(), {test::Program("absent"), "20"});
    Job job({.arguments = arguments, .variables = {{"TMPDIR", scratch.path()}}});
    std::map<std::string, pid_t> pids;
    const bool all_are_in_place = WaitFor([&] {
      pids = WorkersByRank(job);
      return LastCallOf(pids["0"]) == "21 under way" && LastCallOf(pids["1"]) == "21 under way" &&
             LastCallOf(pids["2"]) == "20";
    });
    ASSERT_TRUE(all_are_in_place) << job.Err();
    kill(pids["1"], SIGKILL);
    EXPECT_EQ(job.Wait(), Code(128 + SIGKILL)) << job.Err();
    report = job.Err();
  }

  // Returns the only file below the folder with this end of its path.
  std::string FileOf(const std::string& end) const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scratch.path())) {
      if (entry.path().string().ends_with(end)) found.push_back(entry.path());
    }
    EXPECT_THAT(found, SizeIs(1)) << end;
    return found.empty() ? "" : found[0];
  }

  // Returns the operations of the world without their times, one per line.
  static std::string OperationsIn(const std::string& path) {
    const json file = json::parse(ReadText(path), nullptr, false);
    if (!file.is_object() || file.at("groups").size() != 1) return "no file of one group: " + path;
    std::string text;
    for (json operation : file["groups"][0]["operations"]) {
      EXPECT_GE(operation.at("seconds"), 0);
      EXPECT_EQ(operation.at("began").get<std::string>().size(), 27U);
      operation.erase("seconds");
      operation.erase("began");
      text += operation.dump() + "\n";
    }
    return text;
  }

  ScratchFolder scratch;
  std::string report;
};

TEST_F(OperationsTest, TheReportShowsThoseOfTheCauseAndOfAWaitingRank) {
  Run({});
  const std::string calls =
      "    last operations: AllReduce #19, AllReduce #20, AllReduce #21 (under way) of world\n";
  const std::string file = FileOf("/attempt_0/1.operations.json");
  EXPECT_THAT(report, HasSubstr(calls + "    all operations: " + file + "\n  then: rank 0 "));
  EXPECT_THAT(report, HasSubstr(calls + "  then: rank 2 "));
}

TEST_F(OperationsTest, TheFilesOfAllRanksHaveTheSameSequence) {
  Run({"--log-dir", scratch.Path("logs")});
  std::string calls;
  for (int number = 1; number <= 21; ++number) {
    json call = {{"operation", "AllReduce"}, {"number", number}, {"count", 16},
                 {"dtype", "float32"},       {"op", "sum"},      {"state", "succeeded"}};
    if (number == 21) call["state"] = "under way";
    calls += call.dump() + "\n";
  }
  std::vector<std::string> seen;
  for (const std::string rank : {"0", "1", "2"}) {
    std::string text = OperationsIn(FileOf("/attempt_0/" + rank + "/operations.json"));
    seen.push_back(text);
  }
  // The fingerprints say that the ranks made the same calls.
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[2], seen[0].substr(0, seen[2].size()));
  const std::string without =
      std::regex_replace(seen[0], std::regex("\"fingerprint\":\"[0-9a-f]{16}\","), "");
  EXPECT_EQ(without, calls);
  EXPECT_EQ(std::ranges::count(seen[2], '\n'), 20);
}

}  // namespace
}  // namespace rankrun::testing

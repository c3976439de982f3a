// rankrun --trace and rankctl trace, with the training of the demo.

#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "tests/paths.h"
#include "tests/process/harness.h"
#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct TraceTest : ::testing::Test {
  std::string Folder() const { return scratch.Path("traces"); }

  // Runs the training of the demo with four workers.
  void Train(std::vector<std::string> launcher_flags, std::vector<std::string> flags,
             const std::string& steps = "40") const {
    std::vector<std::string> arguments{"-n", "4", "--max-restarts=1"};
    arguments.insert(arguments.end(), launcher_flags.begin(), launcher_flags.end());
    arguments.insert(arguments.end(), {test::Program("train_lm"), "--steps", steps, "--hidden=16"});
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Job job({.arguments = arguments});
    ASSERT_EQ(job.Wait(milliseconds(100'000)), Code(0)) << job.Err();
  }

  // Returns the trace that rankctl makes; null after a reported failure.
  json Merged() const {
    const std::string file = scratch.Path("trace.json");
    Job merge({.arguments = {"trace", Folder(), "-o", file}, .program = kRankctl});
    EXPECT_EQ(merge.Wait(), Code(0)) << merge.Err();
    EXPECT_THAT(merge.Out(), StartsWith(file + ": 4 ranks, "));
    return json::parse(ReadText(file), nullptr, false);
  }
  std::string MergeError() const {
    Job merge({.arguments = {"trace", Folder()}, .program = kRankctl});
    EXPECT_EQ(merge.Wait(), Code(1));
    return merge.Err();
  }

  ScratchFolder scratch;
};

// Returns the collectives of each rank in their order: name, group, number. Checks that
// the events of a thread are in order and do not overlap, and that each has a name.
std::map<int, std::vector<std::string>> CollectivesOf(const json& trace) {
  std::map<int, std::vector<std::string>> collectives;
  std::map<std::pair<int, int>, double> ends;
  std::set<std::pair<int, int>> named;
  for (const json& event : trace.at("traceEvents")) {
    const std::pair<int, int> thread{event.at("pid"), event.at("tid")};
    if (event.at("ph") == "M") {
      named.insert(thread);
      continue;
    }
    EXPECT_EQ(event.at("ph"), "X");
    EXPECT_TRUE(named.contains(thread)) << event;
    const double begin = event.at("ts");
    const double duration = event.at("dur");
    EXPECT_GE(begin, 0) << event;
    EXPECT_GE(duration, 0) << event;
    EXPECT_GE(begin + 1e-3, ends[thread]) << event;
    ends[thread] = begin + duration;
    const json& arguments = event.at("args");
    EXPECT_TRUE(arguments.contains("bytes")) << event;
    if (event.at("cat") != "collective" && event.at("cat") != "barrier") continue;
    collectives[event.at("pid")].push_back(event.at("name").get<std::string>() + " of " +
                                           arguments.at("group").get<std::string>() + " #" +
                                           arguments.at("number").dump() +
                                           (arguments.contains("result") ? " (no result)" : ""));
  }
  return collectives;
}

TEST_F(TraceTest, CollectivesOfTheDemoAreInTheSameOrderOnAllRanks) {
  Train({"--trace", Folder()}, {});
  json trace = Merged();
  ASSERT_TRUE(trace.is_object());
  auto collectives = CollectivesOf(trace);
  ASSERT_EQ(collectives.size(), 4U);
  EXPECT_GE(collectives[0].size(), 40U);
  EXPECT_EQ(collectives[0][0], "AllReduce of world #1");
  for (const auto& [rank, own] : collectives) EXPECT_EQ(own, collectives[0]) << rank;
}

// A collective that all ranks leave together overlaps on all ranks, as they have one
// clock.
TEST_F(TraceTest, NoRankLeavesAnAllReduceBeforeAllHaveEntered) {
  Train({"--trace", Folder()}, {});
  std::map<int, double> last_begin;
  std::map<int, double> first_end;
  const json trace = Merged();
  ASSERT_TRUE(trace.is_object());
  for (const json& event : trace.at("traceEvents")) {
    if (event.value("name", "") != "AllReduce") continue;
    const int number = event.at("args").at("number");
    const double begin = event.at("ts");
    const double end = begin + event.at("dur").get<double>();
    last_begin[number] = std::max(last_begin[number], begin);
    auto [at, is_new] = first_end.emplace(number, end);
    if (!is_new) at->second = std::min(at->second, end);
  }
  ASSERT_GE(last_begin.size(), 40U);
  constexpr double kError = 5;  // microseconds, of reading two clocks
  for (const auto& [number, begin] : last_begin) EXPECT_GT(first_end[number], begin - kError);
}

TEST_F(TraceTest, AKilledRankLeavesItsTraceAndARestartAddsAnother) {
  Train(
      {"--trace", Folder(), "--rdzv-id=job"},
      {"--checkpoint", scratch.Path("ck"), "--checkpoint-every=10", "--die-rank=2", "--die-at=25"});
  const std::filesystem::path job = Folder() + "/job";
  for (int rank = 0; rank < 4; ++rank) {
    const std::string name = "rank_" + std::to_string(rank) + ".trace";
    EXPECT_TRUE(std::filesystem::exists(job / "attempt_0" / name)) << name;
    EXPECT_TRUE(std::filesystem::exists(job / "attempt_1" / name)) << name;
  }
  json trace = Merged();
  ASSERT_TRUE(trace.is_object());
  EXPECT_EQ(trace.at("otherData").at("run_id"), "job");
  auto collectives = CollectivesOf(trace);
  // The rank that was killed lacks the last call of the others in the first attempt.
  EXPECT_GE(collectives[2].size(), 40U);
  std::set<std::string> names;
  for (const json& event : trace.at("traceEvents")) {
    if (event.at("name") == "thread_name") names.insert(event.at("args").at("name"));
  }
  EXPECT_TRUE(names.contains("world"));
  EXPECT_TRUE(names.contains("world (attempt 1)"));
}

TEST_F(TraceTest, TracesOfTwoJobsAreNotMixed) {
  EXPECT_THAT(MergeError(), AllOf(StartsWith("rankctl: read the folder "), HasSubstr("traces")));
  std::filesystem::create_directory(Folder());
  EXPECT_THAT(MergeError(), HasSubstr("has no traces; rankrun --trace makes them"));
  std::ofstream(Folder() + "/rank_0.trace") << "text";
  EXPECT_THAT(MergeError(), HasSubstr("is no trace of rankrun"));
  std::filesystem::remove(Folder() + "/rank_0.trace");
  for (const char* job : {"one", "one", "two"}) {
    Train({"--trace", Folder(), "--rdzv-id", job}, {}, "1");
  }
  EXPECT_THAT(MergeError(), HasSubstr("has the traces of 2 jobs; want the folder of one of them"));
  std::filesystem::remove_all(Folder() + "/two");
  EXPECT_THAT(MergeError(), HasSubstr("rank_0.2.trace"));
}

TEST_F(TraceTest, AnIncompleteFileIsLeftOut) {
  Train({"--trace", Folder(), "--rdzv-id=job"}, {}, "1");
  const std::string file = Folder() + "/job/attempt_1/rank_1.trace";
  std::filesystem::create_directory(Folder() + "/job/attempt_1");
  std::ofstream(file) << "";
  const std::string merged = scratch.Path("trace.json");
  Job merge({.arguments = {"trace", Folder(), "-o", merged}, .program = kRankctl});
  EXPECT_EQ(merge.Wait(), Code(0));
  EXPECT_THAT(merge.Err(), StartsWith("rankctl: " + file + ": is incomplete"));
  EXPECT_THAT(merge.Out(), HasSubstr("; without 1 incomplete file\n"));
}

TEST_F(TraceTest, TheOutputIsCompleteOrStaysAsItWas) {
  Train({"--trace", Folder(), "--rdzv-id=job"}, {}, "1");
  const std::string input = Folder() + "/job/attempt_0/rank_1.trace";
  const auto size = std::filesystem::file_size(input);
  Job same({.arguments = {"trace", Folder(), "-o", input}, .program = kRankctl});
  EXPECT_EQ(same.Wait(), Code(1));
  EXPECT_EQ(same.Err(),
            "rankctl: --output " + input + ": is one of the traces; want another file\n");
  EXPECT_EQ(std::filesystem::file_size(input), size);

  const std::string output = scratch.Path("trace.json");
  std::ofstream(output) << "former";
  Job failed({.arguments = {"-c", "trap '' XFSZ; ulimit -f 1; exec " + kRankctl + " trace " +
                                      Folder() + " -o " + output},
              .program = "/bin/sh"});
  EXPECT_EQ(failed.Wait(), Code(1));
  EXPECT_EQ(failed.Err(), "rankctl: write: File too large\n");
  EXPECT_EQ(ReadText(output), "former");
  EXPECT_FALSE(std::filesystem::exists(output + ".tmp"));
  EXPECT_TRUE(Merged().is_object());
  EXPECT_FALSE(std::filesystem::exists(output + ".tmp"));

  Job full({.arguments = {"trace", Folder(), "-o", "/dev/full"}, .program = kRankctl});
  EXPECT_EQ(full.Wait(), Code(1));
  EXPECT_EQ(full.Err(), "rankctl: write: No space left on device\n");
}

TEST_F(TraceTest, AFolderThatCannotBeMadeOrWrittenRefusesTheJob) {
  for (const std::string folder : {"/proc/no/traces", "/proc"}) {
    Job run({.arguments = Shell({"--trace", folder}, "echo started")});
    EXPECT_EQ(run.Wait(), Code(2));
    EXPECT_THAT(run.Err(), HasSubstr("rankrun: --trace " + folder + ": create the folder"));
    EXPECT_EQ(run.Out(), "");
  }
}

}  // namespace
}  // namespace rankrun::testing

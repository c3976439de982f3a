// Errors of the other workers when one dies: in a store, and in a collective.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <tuple>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kMourner = test::Program("mourner");
const std::string kPartner = test::Program("partner");
constexpr const char* kWord =
    "wait for key never: rank 1 was killed by SIGKILL, not sent by rankrun; waited ";

#ifdef RANKRUN_SANITIZED
constexpr double kPromptMs = 250;
#else
constexpr double kPromptMs = 50;
#endif

std::vector<std::string> Mourners(int workers, const char* how, int waiters) {
  return {"-n", std::to_string(workers), "--shutdown-timeout", "2", kMourner,
          how,  std::to_string(waiters)};
}

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(DeathTest, EndsAWaitBeforeTermIsTaken) {
  Job run({.arguments = Mourners(2, "blocked", 1)});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 128 + SIGKILL}));
  std::string out = run.Out();
  ASSERT_THAT(out, HasSubstr(kWord));
  ASSERT_THAT(out, HasSubstr("TERM"));
  EXPECT_LT(out.find(kWord), out.find("TERM"));
}

TEST(DeathTest, IsToldBeforeTermComes) {
  Job run({.arguments = Mourners(4, "handled", 1)});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 128 + SIGKILL}));
  EXPECT_EQ(Count(run.Out(), "TERM, told\n"), 3u) << run.Out();
  EXPECT_THAT(run.Out(), Not(HasSubstr("not told")));
  EXPECT_EQ(Count(run.Out(), kWord), 3u) << run.Out();
}

TEST(DeathTest, EndsTheWaitOfAWorkerThatIgnoresTerm) {
  Job run({.arguments = Mourners(2, "ignored", 1)});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 128 + SIGKILL}));
  EXPECT_THAT(run.Out(), HasSubstr(kWord));
}

TEST(DeathTest, EndsManyWaitsOfManyWorkers) {
  Job run({.arguments = Mourners(8, "blocked", 16)});
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = false, .value = 128 + SIGKILL}));
  EXPECT_EQ(Count(run.Out(), kWord), 7u * 16u) << run.Out();
}

// Parameters: backend and call.
class CallDeathTimingTest : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
};

// Returns the milliseconds from the death to each survivor's error that names it.
std::vector<double> HeardAfter(const std::string& output) {
  std::vector<int64_t> heard;
  int64_t died = 0;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    int64_t at = 0;
    words >> word >> at;
    if (word == "died") died = at;
    bool names_it = line.find("rank 1 was killed by SIGKILL") != std::string::npos;
    if (word == "heard" && names_it) heard.push_back(at);
  }
  std::vector<double> after;
  for (int64_t at : heard) after.push_back(static_cast<double>(at - died) / 1e6);
  return after;
}

TEST_P(CallDeathTimingTest, EndsForAllWithRankAndSignalInMilliseconds) {
  auto [backend, call] = GetParam();
  std::vector<double> after;
  for (int i = 0; i < 5; ++i) {
    Job run(
        {.arguments = {"-n", "3", "--prefix", "none", "--shutdown-timeout", "10", kPartner, call},
         .variables = {{"RANKRUN_BACKEND", backend}}});
    EXPECT_EQ(run.Wait(), Code(128 + SIGKILL)) << run.Err();
    std::vector<double> of_two = HeardAfter(run.Out());
    EXPECT_EQ(of_two.size(), 2U) << run.Out() << run.Err();
    after.insert(after.end(), of_two.begin(), of_two.end());
  }
  ASSERT_EQ(after.size(), 10U);
  std::ranges::sort(after);
  RecordProperty("longest_ms", std::to_string(after.back()));
  // The median: a loaded machine delays a few.
  EXPECT_LT(after[after.size() / 2], kPromptMs);
  EXPECT_LT(after.back(), 2'000) << "a second is for a rank whose agent says nothing";
}

INSTANTIATE_TEST_SUITE_P(Calls, CallDeathTimingTest,
                         ::testing::Combine(::testing::Values("shm", "gloo"),
                                            ::testing::Values("all_reduce", "barrier",
                                                              "send_recv")),
                         [](const auto& call) {
                           return std::string(std::get<0>(call.param)) + "_" +
                                  std::get<1>(call.param);
                         });

}  // namespace
}  // namespace rankrun::testing

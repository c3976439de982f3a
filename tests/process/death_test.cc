// What workers hear when another one has died.

#include <gmock/gmock.h>
#include <signal.h>

#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kMourner = RANKRUN_BINARY_DIR "/bin/mourner";
constexpr const char* kWord =
    "wait for key never: rank 1 was killed by SIGKILL, not sent by rankrun; waited ";

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
  const std::string out = run.Out();
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

}  // namespace
}  // namespace rankrun::testing

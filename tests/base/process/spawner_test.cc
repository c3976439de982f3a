#include "base/process/spawner.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <vector>

#include "base/uv/uv_loop.h"
#include "tests/base/support.h"
#include "tests/base/uv/ready.h"

namespace rankrun {
namespace {

using std::chrono::milliseconds;

SpawnSpec Shell(const std::string& script) {
  SpawnSpec spec;
  spec.file = "/bin/sh";
  spec.arguments = {"sh", "-c", script};
  spec.environment = {"PATH=/usr/bin:/bin"};
  return spec;
}

SpawnSpec ExitWith(int code) { return Shell("exit " + std::to_string(code)); }

struct SpawnerTest : testing::Test {
  void Start(SpawnSpec spec) {
    spawner->Start(std::move(spec), [this](Result<SpawnedProcess> result) {
      always_on_loop &= loop.IsOnLoop();
      results.push_back(std::move(result));
    });
  }
  bool RunUntilStarted(size_t count) {
    return loop.RunUntil([&] { return results.size() >= count; }, test::kLong);
  }

  Loop loop;
  std::unique_ptr<Spawner> spawner = std::make_unique<Spawner>(loop);
  std::vector<Result<SpawnedProcess>> results;
  bool always_on_loop = true;
};

TEST_F(SpawnerTest, StartsAndReportsOnTheLoop) {
  Start(ExitWith(5));
  EXPECT_EQ(spawner->pending(), 1);
  EXPECT_TRUE(results.empty());
  ASSERT_TRUE(RunUntilStarted(1));
  EXPECT_EQ(spawner->pending(), 0);
  EXPECT_TRUE(always_on_loop);
  ASSERT_TRUE(results[0]);
  EXPECT_EQ(test::WaitForExit(results[0]->pid), (ProcessExit{.signaled = false, .value = 5}));
}

TEST_F(SpawnerTest, AnotherWayIsTriedFirst) {
  const std::vector<Spawner::OtherWay> ways = {
      [](const SpawnSpec&) { return SpawnProcess(ExitWith(6)); },
      [](const SpawnSpec&) {
        return Error{ErrorCode::kCancelled, "no"};
      },
      [](const SpawnSpec&) { return std::nullopt; }};
  for (const Spawner::OtherWay& way : ways) {
    spawner->Start(
        ExitWith(5),
        [this](Result<SpawnedProcess> result) { results.push_back(std::move(result)); }, way);
    ASSERT_TRUE(RunUntilStarted(results.size() + 1));
  }
  ASSERT_TRUE(results[0] && results[2]);
  EXPECT_EQ(test::WaitForExit(results[0]->pid).value, 6);
  EXPECT_EQ(results[1].error().message, "no");
  EXPECT_EQ(test::WaitForExit(results[2]->pid).value, 5);
}

TEST_F(SpawnerTest, EachOfManyIsStartedOnce) {
  constexpr int kMany = 100;
  for (int i = 0; i < kMany; ++i) Start(ExitWith(i));
  EXPECT_EQ(spawner->pending(), kMany);
  ASSERT_TRUE(RunUntilStarted(kMany));
  EXPECT_EQ(spawner->pending(), 0);
  std::set<int> codes;
  for (auto& result : results) {
    ASSERT_TRUE(result) << result.error().message;
    codes.insert(test::WaitForExit(result->pid).value);
  }
  EXPECT_EQ(codes.size(), static_cast<size_t>(kMany));
}

TEST_F(SpawnerTest, AFailureIsReportedInItsPlace) {
  Start(ExitWith(0));
  SpawnSpec missing = ExitWith(0);
  missing.file = "/no/such/program";
  Start(missing);
  Start(ExitWith(0));
  ASSERT_TRUE(RunUntilStarted(3));
  ASSERT_FALSE(results[1]);
  EXPECT_EQ(results[1].error().code, ErrorCode::kNotFound);
  for (size_t i : {0u, 2u}) {
    ASSERT_TRUE(results[i]);
    EXPECT_EQ(test::WaitForExit(results[i]->pid), ProcessExit{});
  }
}

TEST_F(SpawnerTest, AbandonedStartsAreNeverReported) {
  constexpr int kMany = 100;
  std::promise<void> go;
  SpawnSpec held = ExitWith(0);
  held.before = [may_go = go.get_future().share()] { may_go.wait(); };
  for (int i = 0; i < kMany; ++i) Start(held);
  spawner->Abandon();
  auto under_way = static_cast<size_t>(spawner->pending());
  EXPECT_LT(under_way, static_cast<size_t>(kMany)) << "each holds a thread";
  go.set_value();
  ASSERT_TRUE(RunUntilStarted(under_way));
  ASSERT_TRUE(spawner->AwaitIdle(test::kLong));
  test::RunReadyCallbacks(loop);
  EXPECT_EQ(results.size(), under_way);
  EXPECT_EQ(spawner->pending(), 0);
  for (auto& result : results) EXPECT_EQ(test::WaitForExit(result->pid), ProcessExit{});
  EXPECT_TRUE(test::HasNoChild());
}

TEST_F(SpawnerTest, AStartUnderWayIsAwaited) {
  std::promise<void> begun;
  std::promise<void> go;
  SpawnSpec spec = ExitWith(5);
  spec.before = [&] {
    begun.set_value();
    go.get_future().wait();
  };
  EXPECT_TRUE(spawner->AwaitIdle(milliseconds(0)));
  Start(spec);
  begun.get_future().wait();
  spawner->Abandon();
  EXPECT_FALSE(spawner->AwaitIdle(milliseconds(10)));
  EXPECT_TRUE(test::HasNoChild());
  go.set_value();
  ASSERT_TRUE(spawner->AwaitIdle(test::kLong));
  EXPECT_FALSE(test::HasNoChild());
  EXPECT_TRUE(results.empty());
  ASSERT_TRUE(RunUntilStarted(1));
  EXPECT_EQ(test::WaitForExit(results[0]->pid).value, 5);
}

TEST_F(SpawnerTest, ItStillStartsAfterAbandon) {
  Start(ExitWith(0));
  spawner->Abandon();
  size_t before = static_cast<size_t>(spawner->pending());
  Start(ExitWith(9));
  ASSERT_TRUE(RunUntilStarted(before + 1));
  EXPECT_EQ(test::WaitForExit(results.back()->pid).value, 9);
  if (before > 0) test::WaitForExit(results.front()->pid);
}

TEST_F(SpawnerTest, ItsProcessesLiveAsLongAsItDoes) {
  Start(Shell("exec sleep 1000"));
  ASSERT_TRUE(RunUntilStarted(1));
  ASSERT_TRUE(results[0]);
  auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  EXPECT_FALSE(results[0]->handle.AwaitEnd(soon)) << "it died early";
  spawner.reset();
  EXPECT_EQ(test::WaitForExit(results[0]->pid), (ProcessExit{.signaled = true, .value = SIGKILL}));
}

TEST_F(SpawnerTest, NothingIsReportedAfterItsEnd) {
  for (int i = 0; i < 3; ++i) Start(Shell("exec sleep 1000"));
  test::WaitFor([] { return !test::HasNoChild(); });  // one start is in progress
  spawner.reset();
  EXPECT_FALSE(loop.RunUntil([&] { return !results.empty(); }, milliseconds(20)));
  while (!test::HasNoChild()) {
    siginfo_t info{};
    ASSERT_EQ(waitid(P_ALL, 0, &info, WEXITED), 0);
    EXPECT_EQ(info.si_status, SIGKILL);
  }
}

std::set<std::string> Threads() {
  std::set<std::string> paths;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    paths.insert(task.path());
  }
  return paths;
}

TEST(SpawnerThreadTest, TakesNoSignals) {
  Loop loop;
  std::thread([] {}).join();  // ThreadSanitizer starts a thread of its own with the first one
  std::set<std::string> before = Threads();
  Spawner spawner(loop);
  std::set<std::string> after = Threads();
  EXPECT_EQ(after.size(), before.size() + 1);
  for (const std::string& thread : after) {
    if (before.contains(thread)) continue;
    std::string status = test::ReadWholeFile(thread + "/status");
    uint64_t blocked = std::stoull(status.substr(status.find("SigBlk:") + 7), nullptr, 16);
    for (int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) {
      EXPECT_EQ(blocked >> (number - 1) & 1, 1u) << number;
    }
  }
}

}  // namespace
}  // namespace rankrun

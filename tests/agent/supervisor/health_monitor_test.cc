#include "agent/supervisor/health_monitor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <optional>

#include "agent/health/process_facts.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLong{20};
constexpr HangPolicy kPolicy{.notice = milliseconds(100)};
constexpr HangPolicy kWithoutNotices{.notice = milliseconds(0), .timeout = milliseconds(100)};

// The monitor of one node of several, with one worker.
struct HealthMonitorTest : ::testing::Test {
  HealthMonitor::Callbacks Callbacks() {
    return {.samples = [this] { return samples; },
            .show = [](const std::string&) {},
            .on_hang = [](const HangVerdict&) {},
            .workers = [] { return std::vector<pid_t>(); },
            .on_stuck = [](pid_t) {},
            .stuck_limit = {},
            .on_unfinished = [](const HangVerdict&) {},
            .finish_limit = {},
            .store_waits = [] { return std::vector<StoreWaitTimes::Entry>(); },
            .store_port = [] { return uint16_t{0}; },
            .store_changes = [] { return uint64_t{5}; },
            .send = [this](std::vector<WorkerSample> of_node,
                           const auto&) { sent.push_back(of_node.at(0)); }};
  }

  Loop loop;
  std::vector<WorkerSample> samples = {{.global_rank = 4, .pid = getpid()}};
  std::vector<WorkerSample> sent;
  HealthMonitor monitor{loop, kPolicy, Callbacks()};
};

TEST_F(HealthMonitorTest, WorkersThatHaveAllSucceededAnswerUntilTheRoundEnds) {
  HealthMonitor silent{loop, kWithoutNotices, Callbacks()};
  silent.BeginAttempt();
  samples = {{.global_rank = 4, .has_ended = true}};
  silent.NoteFinished();
  samples.clear();
  silent.EndAttempt();
  EXPECT_FALSE(loop.RunUntil([&] { return !sent.empty(); }, milliseconds(100))) << "not wanted";
  silent.WantSamples();
  EXPECT_TRUE(loop.RunUntil([&] { return sent.size() >= 2; }, kLong));
  EXPECT_TRUE(sent[0].has_ended);
  EXPECT_EQ(sent[0].global_rank, 4);
  EXPECT_EQ(sent[0].store_changes, 5U);
  EXPECT_LT(sent[0].taken, sent[1].taken);
  silent.ForgetFinished();
  sent.clear();
  EXPECT_FALSE(loop.RunUntil([&] { return !sent.empty(); }, milliseconds(100)));
}

TEST_F(HealthMonitorTest, WorkersThatDoNotFinishAreJudgedOnce) {
  std::vector<HangVerdict> verdicts;
  HealthMonitor::Callbacks callbacks = Callbacks();
  callbacks.send = {};
  callbacks.finish_limit = milliseconds(50);
  callbacks.on_unfinished = [&](const HangVerdict& verdict) { verdicts.push_back(verdict); };
  HealthMonitor of_one_node{loop, kPolicy, std::move(callbacks)};
  of_one_node.BeginAttempt();
  samples = {{.global_rank = 0, .has_ended = true}, {.global_rank = 1, .pid = getpid()}};
  of_one_node.NoteFinished();
  of_one_node.NoteFinished();
  ASSERT_TRUE(loop.RunUntil([&] { return !verdicts.empty(); }, kLong));
  EXPECT_TRUE(verdicts[0].causes.contains(1));
  EXPECT_NE(verdicts[0].text.find("nothing visible shows whether it waits for rank 0"),
            std::string::npos)
      << verdicts[0].text;
  EXPECT_FALSE(loop.RunUntil([&] { return verdicts.size() > 1; }, milliseconds(200)));
}

TEST_F(HealthMonitorTest, StillWorkersThatDoNotFinishHaveTheirStacksRead) {
  const pid_t still = fork();
  if (still == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  const auto waits = [&] {
    AwaitedFiles files;
    return ReadProcessFacts(still, files).call_name == "pause";
  };
  for (int i = 0; i < 10'000 && !waits(); ++i) poll(nullptr, 0, 2);
  std::vector<pid_t> taken;
  std::optional<HangVerdict> verdict;
  HealthMonitor::Callbacks callbacks = Callbacks();
  callbacks.send = {};
  callbacks.finish_limit = milliseconds(400);
  callbacks.on_unfinished = [&](const HangVerdict& found) { verdict = found; };
  callbacks.take_stacks = [&](std::vector<pid_t> pids, const std::function<void()>& done) {
    taken = std::move(pids);
    done();
  };
  HealthMonitor of_one_node{loop, kPolicy, std::move(callbacks)};
  of_one_node.BeginAttempt();
  samples = {{.global_rank = 0, .has_ended = true}, {.global_rank = 1, .pid = still}};
  of_one_node.NoteFinished();
  EXPECT_TRUE(loop.RunUntil([&] { return verdict.has_value(); }, kLong));
  EXPECT_TRUE(verdict && verdict->needs_stacks);
  EXPECT_EQ(taken, std::vector<pid_t>{still});
  kill(still, SIGKILL);
  waitpid(still, nullptr, 0);
}

TEST_F(HealthMonitorTest, ANodeWhoseWorkersHaveEndedSendsThemWhenANoticeIsNear) {
  monitor.BeginAttempt();
  samples = {{.global_rank = 4, .has_ended = true, .ended_for = milliseconds(60)}};
  monitor.NoteFinished();
  samples.clear();
  monitor.EndAttempt();
  ASSERT_TRUE(loop.RunUntil([&] { return !sent.empty(); }, kLong)) << "nobody wanted them";
  EXPECT_GE(sent[0].ended_for, milliseconds(60));
}

TEST_F(HealthMonitorTest, TakesTheStacksOfAllIfAVerdictNeedsThem) {
  const auto waits_in = [](int rank, pid_t pid, CallKind call) {
    WorkerSample sample{.global_rank = rank, .pid = pid};
    sample.process.emplace().call = call;
    return sample;
  };
  samples = {waits_in(0, 10, CallKind::kLock),
             waits_in(1, 11, CallKind::kPoll),
             waits_in(2, 12, CallKind::kLock),
             {.global_rank = 3, .has_ended = true}};
  std::vector<std::vector<pid_t>> taken;
  std::vector<HangVerdict> verdicts;
  HealthMonitor::Callbacks callbacks = Callbacks();
  callbacks.send = {};
  callbacks.on_hang = [&](const HangVerdict& verdict) { verdicts.push_back(verdict); };
  callbacks.take_stacks = [&](std::vector<pid_t> pids, const std::function<void()>& done) {
    taken.push_back(std::move(pids));
    done();
  };
  HealthMonitor of_one_node(loop, kPolicy, callbacks);
  of_one_node.BeginAttempt();
  of_one_node.OnOrder({.text = "nobody", .witnesses = {0}, .needs_stacks = true});
  EXPECT_TRUE(loop.RunUntil([&] { return !verdicts.empty(); }, kLong));
  of_one_node.OnOrder({.causes = {{2, "sleeps"}}, .text = "rank 2", .witnesses = {2, 0}});
  EXPECT_TRUE(loop.RunUntil([&] { return verdicts.size() == 2; }, kLong));
  of_one_node.OnOrder({.text = "all have entered", .witnesses = {0}});
  EXPECT_TRUE(loop.RunUntil([&] { return verdicts.size() == 3; }, kLong));
  EXPECT_EQ(taken, (std::vector<std::vector<pid_t>>{{11, 10, 12}, {12, 10}, {10}}));
}

TEST_F(HealthMonitorTest, TakesTheStacksOfAllThatItHasSentIfTheyAreWanted) {
  samples = {{.global_rank = 4, .pid = 10}, {.global_rank = 5, .has_ended = true}};
  std::vector<pid_t> taken;
  bool done = false;
  HealthMonitor::Callbacks callbacks = Callbacks();
  callbacks.take_stacks = [&](std::vector<pid_t> pids, const std::function<void()>& then) {
    taken = std::move(pids);
    then();
  };
  HealthMonitor of_several(loop, kPolicy, callbacks);
  of_several.TakeStacks([&] { done = true; });
  EXPECT_FALSE(done) << "no attempt runs";
  of_several.BeginAttempt();
  of_several.WantSamples();
  ASSERT_TRUE(loop.RunUntil([&] { return !sent.empty(); }, kLong));
  of_several.TakeStacks([&] { done = true; });
  EXPECT_EQ(taken, std::vector<pid_t>{10});
  EXPECT_TRUE(done);
}

TEST_F(HealthMonitorTest, SendsSamplesWithoutFactsIfReadingThemBlocks) {
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  constexpr int kJobs = 64;  // more than the pool has threads
  int done = 0;
  for (int i = 0; i < kJobs; ++i)
    RunInPool(
        loop, [opened] { opened.wait(); }, [&] { ++done; });
  monitor.BeginAttempt();
  monitor.WantSamples();
  EXPECT_TRUE(loop.RunUntil([&] { return !sent.empty(); }, kLong));
  gate.set_value();
  EXPECT_TRUE(loop.RunUntil([&] { return done == kJobs; }, kLong));
  ASSERT_FALSE(sent.empty());
  EXPECT_FALSE(sent[0].process);
}

}  // namespace
}  // namespace rankrun::agent

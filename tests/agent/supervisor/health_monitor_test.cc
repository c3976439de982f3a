#include "agent/supervisor/health_monitor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <future>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kLong{20};
constexpr HangPolicy kPolicy{.notice = milliseconds(100)};

// The monitor of one node of several, with one worker.
struct HealthMonitorTest : ::testing::Test {
  HealthMonitor::Callbacks Callbacks() {
    return {.samples = [this] { return samples; },
            .show = [](const std::string&) {},
            .on_hang = [](const HangVerdict&) {},
            .workers = [] { return std::vector<pid_t>(); },
            .on_stuck = [](pid_t) {},
            .stuck_limit = {},
            .on_unfinished = [] {},
            .finish_limit = {},
            .store_waits = [] { return std::vector<StoreWaitTimes::Entry>(); },
            .store_port = [] { return uint16_t{0}; },
            .send = [this](std::vector<WorkerSample> of_node,
                           const auto&) { sent.push_back(of_node.at(0)); }};
  }

  Loop loop;
  std::vector<WorkerSample> samples = {{.global_rank = 4, .pid = getpid()}};
  std::vector<WorkerSample> sent;
  HealthMonitor monitor{loop, kPolicy, Callbacks()};
};

TEST_F(HealthMonitorTest, WorkersThatHaveAllSucceededAnswerUntilTheRoundEnds) {
  monitor.BeginAttempt();
  samples = {{.global_rank = 4, .has_ended = true}};
  monitor.NoteFinished();
  samples.clear();
  monitor.EndAttempt();
  EXPECT_FALSE(loop.RunUntil([&] { return !sent.empty(); }, milliseconds(100))) << "not wanted";
  monitor.WantSamples();
  EXPECT_TRUE(loop.RunUntil([&] { return sent.size() >= 2; }, kLong));
  EXPECT_TRUE(sent[0].has_ended);
  EXPECT_EQ(sent[0].global_rank, 4);
  EXPECT_LT(sent[0].taken, sent[1].taken);
  monitor.ForgetFinished();
  sent.clear();
  EXPECT_FALSE(loop.RunUntil([&] { return !sent.empty(); }, milliseconds(100)));
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

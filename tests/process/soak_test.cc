// Five nodes and a dice: workers, agents and nodes are killed, stopped and
// drained while a small program counts steps; it gets to its end, and nothing is
// left. RANKRUN_SOAK_SECONDS: how long; RANKRUN_SOAK_SEED: the same again.

#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <sstream>

#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

// Rank 0 goes on where the checkpoint is.
constexpr const char* kCount = R"sh(
n=$(cat checkpoint 2>/dev/null || echo 0)
until [ -e end ]; do
  if [ $RANK = 0 ]; then
    n=$((n + 1))
    echo $n >next.$$ && mv next.$$ checkpoint && echo $n >>steps
  fi
  sleep 0.01
done
)sh";

int NumberOf(const char* variable, int otherwise) {
  const char* text = getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

struct SoakTest : NodesTest {
  SoakTest() {
    job = {"--nnodes=1:5", "--node-timeout=3",    "--last-call=0.2", "--max-restarts=1000000",
           "-n1",          "--shutdown-timeout=2"};
  }

  size_t Dice(size_t sides) { return std::uniform_int_distribution<size_t>(0, sides - 1)(random); }
  // Of the nodes, or only of those without the coordinator.
  Job& AnyNode() { return *nodes[Dice(nodes.size())]; }
  size_t AnyGuest() { return 1 + Dice(nodes.size() - 1); }
  void Replace(size_t i) {
    gone.push_back(std::move(nodes[i]));
    StartGuest({}, Stamped(kCount));
    std::swap(nodes[i], nodes.back());
    nodes.pop_back();
  }
  static pid_t WorkerOf(const Job& node) {
    pid_t agent = AgentOf(node);
    std::vector<pid_t> workers = agent != 0 ? ChildrenOf(agent) : std::vector<pid_t>();
    return workers.empty() ? 0 : workers[0];
  }
  static void Hit(pid_t pid, int signal_number) {
    if (pid != 0) kill(pid, signal_number);
  }
  void StopForAMoment(pid_t pid) {
    Hit(pid, SIGSTOP);
    size_t steps = Read("steps").size();
    WaitFor([&] { return Read("steps").size() > steps; }, milliseconds(Dice(400)));
    Hit(pid, SIGCONT);
  }
  void Drain(size_t guest) {
    nodes[guest]->Signal(SIGTERM);
    EXPECT_EQ(nodes[guest]->Wait(), Code(204)) << nodes[guest]->Err();
    Replace(guest);
  }
  void Lose(size_t guest) {
    KillHost(*nodes[guest]);
    Replace(guest);
  }

  void Blow() {
    switch (Dice(8)) {
      case 0:
        return Hit(WorkerOf(AnyNode()), SIGKILL);
      case 1:
        return Hit(AgentOf(AnyNode()), SIGKILL);
      case 2:
        return Hit(AgentOf(*nodes[AnyGuest()]), SIGSTOP);
      case 3:
        return StopForAMoment(AgentOf(AnyNode()));
      case 4:
        return StopForAMoment(WorkerOf(AnyNode()));
      case 5:
        return Lose(AnyGuest());
      default:
        return Drain(AnyGuest());
    }
  }

  unsigned seed = static_cast<unsigned>(NumberOf("RANKRUN_SOAK_SEED", getpid()));
  std::mt19937 random{seed};
  std::vector<std::unique_ptr<Job>> gone;
};

TEST_F(SoakTest, AJobGetsToItsEnd) {
  SCOPED_TRACE("RANKRUN_SOAK_SEED=" + std::to_string(seed));
  auto end =
      std::chrono::steady_clock::now() + std::chrono::seconds(NumberOf("RANKRUN_SOAK_SECONDS", 10));
  StartHost({}, Stamped(kCount));
  for (int i = 1; i < 5; ++i) StartGuest({}, Stamped(kCount));
  int blows = 0;
  for (; std::chrono::steady_clock::now() < end && !HasFailure(); ++blows) {
    size_t steps = Read("steps").size();
    WaitFor([&] { return Read("steps").size() > steps + 100; }, milliseconds(200 + Dice(1'500)));
    Blow();
  }
  Touch("end");
  for (const auto& node : nodes) {
    EXPECT_EQ(node->Wait(milliseconds(60'000)), Code(0)) << node->pid() << "\n" << Errors();
  }
  for (const auto& node : gone) EXPECT_TRUE(node->Wait().has_value());
  EXPECT_TRUE(NothingIsLeft(milliseconds(1'000)));
  EXPECT_EQ(Overlaps(), "");
  std::istringstream steps(Read("steps"));
  int before = 0, attempts = 0;
  for (int step; steps >> step; before = step) EXPECT_GT(step, before);
  for (; Count(Read("up"), " " + std::to_string(attempts) + "\n") > 0;) ++attempts;
  std::cout << blows << " blows, " << attempts << " attempts, " << before << " steps\n";
}

}  // namespace
}  // namespace rankrun::testing

// Random faults on five nodes: workers, agents and nodes are killed, stopped and
// drained while examples/train_lm trains. After the last fault, the training must
// reach its last step with the loss of an undisturbed run, and no process or file
// may be left.
// RANKRUN_SOAK_SECONDS: duration of the faults. RANKRUN_SOAK_SEED: seed of the
// random faults; their effect also depends on the timing of the machine.

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>

#include "agent/output/folder_mark.h"
#include "tests/paths.h"
#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr size_t kNodes = 5;
constexpr int kPace = 40;  // milliseconds per step
const std::string kTrain = test::Program("train_lm");

int NumberOf(const char* variable, int otherwise) {
  const char* text = getenv(variable);
  return text != nullptr ? std::atoi(text) : otherwise;
}

// Returns the numbers that follow each `text`.
std::vector<double> After(const std::string& text, const std::string& all) {
  std::vector<double> numbers;
  for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) {
    numbers.push_back(std::stod(all.substr(at + text.size())));
  }
  return numbers;
}

// Returns the files that a job must not leave below `folder`: empty folders, empty logs and
// other files. Logs and operations of failed attempts stay, and the mark of a folder with them.
std::string LitterBelow(const std::string& folder) {
  std::string litter;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    std::string name = entry.path().filename().string();
    const auto beside = fs::directory_iterator(entry.path().parent_path());
    if (name == agent::kFolderMark && std::distance(begin(beside), end(beside)) > 1) continue;
    bool is_log =
        entry.is_regular_file() && (name.ends_with(".log") || name.ends_with("operations.json"));
    if (is_log ? entry.file_size() > 0 : entry.is_directory() && !fs::is_empty(entry)) continue;
    litter += entry.path().string() + "\n";
  }
  return litter;
}

pid_t WorkerOf(const Job& node) {
  pid_t agent = AgentOf(node);
  std::vector<pid_t> workers = agent != 0 ? ChildrenOf(agent) : std::vector<pid_t>();
  return workers.empty() ? 0 : workers[0];
}

// Returns whether a node that got SIGTERM has left: with 204, or as its guardian ends
// it when the agent is killed before that. The guardian ends by SIGTERM if it got
// the signal as well, otherwise with 205.
bool HasLeft(const std::optional<ProcessExit>& exit) {
  return exit == Code(204) || exit == Code(205) || exit == KilledBy(SIGTERM);
}

struct SoakTest : NodesTest {
  SoakTest() {
    job = {"--nnodes=1:5",           "--node-timeout=3",  "--last-call=0.2",
           "--max-restarts=1000000", "--restart-pause=0", "-n1",
           "--shutdown-timeout=2"};
  }

  // Rank 0 of each attempt appends to the same file, so its lines are in order.
  std::string Script() const {
    return Stamped(
        "exec " + kTrain + " --steps " + std::to_string(steps) +
        " --hidden 16 --pace $(cat pace) --checkpoint checkpoint --checkpoint-every 5 >>training");
  }
  double UndisturbedLoss() const {
    Job one({.arguments = {"-n1", kTrain, "--steps", std::to_string(steps), "--hidden", "16"}});
    EXPECT_EQ(one.Wait(milliseconds(100'000)), Code(0)) << one.Err();
    std::vector<double> losses = After("final loss ", one.Out());
    return losses.empty() ? NAN : losses[0];
  }

  // Each node has its own folder for temporary files.
  void StartNode() {
    std::string temporary = folder.Path("tmp." + std::to_string(started++));
    fs::create_directory(temporary);
    variables["TMPDIR"] = temporary;
    Job& node = nodes.empty() ? StartHost({}, Script()) : StartGuest({}, Script());
    temporary_of[&node] = temporary;
  }
  void Replace(size_t guest) {
    gone.push_back(std::move(nodes[guest]));
    StartNode();
    std::swap(nodes[guest], nodes.back());
    nodes.pop_back();
  }
  void ReplaceThoseThatLeft() {
    for (size_t i = 0; i < nodes.size(); ++i) {
      std::optional<ProcessExit> exit = nodes[i]->Wait(milliseconds(0));
      if (!exit) continue;
      Note("has left", *nodes[i]);
      EXPECT_TRUE(HasLeft(exit)) << nodes[i]->Err();
      ASSERT_EQ(told_to_leave.erase(nodes[i].get()), 1U) << nodes[i]->Err();
      Replace(i);
    }
  }

  size_t Dice(size_t sides) { return std::uniform_int_distribution<size_t>(0, sides - 1)(random); }
  // Return one of all nodes, and the index of one without the coordinator.
  const Job& AnyNode() { return *nodes[Dice(nodes.size())]; }
  size_t AnyGuest() { return 1 + Dice(nodes.size() - 1); }

  void Note(const std::string& what, const Job& node) {
    auto since = std::chrono::duration_cast<milliseconds>(steady_clock::now() - begin);
    history += std::to_string(since.count()) + " ms: " + what + ", node " +
               std::to_string(node.pid()) + "\n";
  }
  void Hit(const char* what, const Job& node, pid_t pid, int signal_number) {
    Note(what, node);
    if (pid != 0) kill(pid, signal_number);
  }
  void StopForAMoment(const char* what, const Job& node, pid_t pid) {
    Hit(what, node, pid, SIGSTOP);
    Linger(milliseconds(Dice(400)));
    if (pid != 0) kill(pid, SIGCONT);
  }
  // Before the agent starts, SIGTERM kills the guardian like any program.
  void TellToLeave(const char* what, const Job& node, pid_t pid) {
    if (AgentOf(node) == 0) return;
    told_to_leave.insert(&node);
    Hit(what, node, pid, SIGTERM);
  }
  void Lose(size_t guest, bool with_agent) {
    pid_t agent = AgentOf(*nodes[guest]);
    temporary_of.erase(nodes[guest].get());  // no process is left to remove it
    Hit(with_agent ? "lose" : "kill guardian", *nodes[guest], nodes[guest]->pid(), SIGKILL);
    if (with_agent && agent != 0) kill(agent, SIGKILL);
    Replace(guest);
  }

  void Blow() {
    const Job& node = AnyNode();
    const Job& guest = *nodes[AnyGuest()];
    switch (Dice(16)) {
      case 0:
      case 1:
      case 2:
        return Hit("kill worker", node, WorkerOf(node), SIGKILL);
      case 3:
      case 4:
        return Hit("terminate worker", node, WorkerOf(node), SIGTERM);
      case 5:
      case 6:
        return StopForAMoment("stop worker", node, WorkerOf(node));
      case 7:
      case 8:
      case 9:
        return Hit("kill agent", node, AgentOf(node), SIGKILL);
      case 10:
        return Hit("stop agent for good", node, AgentOf(node), SIGSTOP);
      case 11:
        return StopForAMoment("stop agent", node, AgentOf(node));
      case 12:
        return TellToLeave("terminate agent", guest, AgentOf(guest));
      case 13:
        return TellToLeave("terminate node", guest, guest.pid());
      case 14:
        return Lose(AnyGuest(), true);
      default:
        return Lose(AnyGuest(), false);
    }
  }

  // Sets the pace of later attempts.
  void SetPace(int pace) const {
    std::ofstream(folder.Path("pace.new")) << pace << "\n";
    fs::rename(folder.Path("pace.new"), folder.Path("pace"));
  }

  // Waits for `time`, or less if the first node ends.
  void Linger(milliseconds time) {
    WaitFor([&] { return nodes[0]->Wait(milliseconds(0)).has_value(); }, time);
  }

  void ExpectTheEnd(double undisturbed_loss) const {
    std::string training = Read("training");
    std::vector<double> resumed = After("resumed from step ", training);
    EXPECT_TRUE(std::is_sorted(resumed.begin(), resumed.end())) << training;
    std::vector<double> losses = After("final loss ", training);
    ASSERT_FALSE(losses.empty()) << training;
    EXPECT_NEAR(losses.back() / undisturbed_loss, 1, 1e-3);
    EXPECT_EQ(Overlaps(), "");
    for (const auto& [node, temporary] : temporary_of) {
      EXPECT_EQ(LitterBelow(temporary), "") << "of node " << node->pid() << "\n" << node->Err();
    }
  }

  int seconds = NumberOf("RANKRUN_SOAK_SECONDS", 10);
  int steps = seconds * 1000 / kPace;  // the training lasts longer than the faults
  unsigned seed = static_cast<unsigned>(NumberOf("RANKRUN_SOAK_SEED", 1));
  std::mt19937 random{seed};
  steady_clock::time_point begin = steady_clock::now();
  std::string history;
  int started = 0;
  std::map<const Job*, std::string> temporary_of;
  std::set<const Job*> told_to_leave;
  std::vector<std::unique_ptr<Job>> gone;
};

TEST_F(SoakTest, ATrainingGetsToItsLastStep) {
  SCOPED_TRACE("RANKRUN_SOAK_SEED=" + std::to_string(seed));
  double undisturbed_loss = UndisturbedLoss();
  SetPace(kPace);
  begin = steady_clock::now();
  while (nodes.size() < kNodes) StartNode();
  int blows = 0;
  for (; steady_clock::now() < begin + std::chrono::seconds(seconds) && !HasFailure(); ++blows) {
    Linger(milliseconds(Dice(1'600)));
    ReplaceThoseThatLeft();
    Blow();
  }
  SetPace(0);
  Hit("kill worker", *nodes[0], WorkerOf(*nodes[0]), SIGKILL);
  std::vector<double> resumed = After("resumed from step ", Read("training"));
  std::cout << "seed " << seed << ": " << blows << " blows, " << Count(Read("up"), "up 0 ")
            << " attempts, " << (resumed.empty() ? 0 : resumed.back()) << " of " << steps
            << " steps" << std::endl;
  for (const auto& node : nodes) {
    auto exit = node->Wait(milliseconds(60'000 + 2'000 * seconds));
    if (told_to_leave.contains(node.get()) && HasLeft(exit)) continue;
    EXPECT_EQ(exit, Code(0)) << node->pid() << "\n" << Errors();
  }
  for (const auto& node : gone) EXPECT_TRUE(node->Wait().has_value());
  EXPECT_TRUE(NothingIsLeft(milliseconds(1'000)));
  ExpectTheEnd(undisturbed_loss);
  if (HasFailure()) std::cout << history;
}

}  // namespace
}  // namespace rankrun::testing

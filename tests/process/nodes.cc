#include "tests/process/nodes.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace rankrun::testing {

pid_t AgentOf(const Job& node) {
  for (pid_t child : ChildrenOf(node.pid())) {
    if (ReadText("/proc/" + std::to_string(child) + "/comm") == "rankrun-agent\n") return child;
  }
  return 0;
}

namespace {

// Other threads of a process can hold its files after the first one has ended.
bool IsOver(pid_t pid) {
  std::string folder = "/proc/" + std::to_string(pid);
  std::string stat = ReadText(folder + "/stat");
  if (stat.empty()) return true;
  std::error_code error;
  auto threads = std::filesystem::directory_iterator(folder + "/task", error);
  auto count = error ? 0 : std::distance(begin(threads), end(threads));
  return stat.find(") Z ") != std::string::npos && count <= 1;
}

}  // namespace

Job& NodesTest::Start(const std::vector<std::string>& flags, const std::string& script) {
  std::vector<std::string> all = job;
  all.insert(all.end(), flags.begin(), flags.end());
  nodes.push_back(std::make_unique<Job>(
      Job::Options{.arguments = Shell(all, "cd " + folder.path() + "\n" + script),
                   .variables = variables,
                   .in_child = in_child}));
  return *nodes.back();
}

Job& NodesTest::StartHost(std::vector<std::string> flags, const std::string& script) {
  flags.insert(flags.begin(), {"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:" + port,
                               "--rdzv-conf=is_host=1" + conf});
  return Start(flags, script);
}

Job& NodesTest::StartGuest(std::vector<std::string> flags, const std::string& script) {
  flags.insert(flags.begin(), {"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:" + port,
                               "--rdzv-conf=is_host=0" + conf});
  return Start(flags, script);
}

// The kernel releases the lock when the worker and all its children have ended.
std::string NodesTest::Stamped(const std::string& script) {
  return R"sh(
A=$TORCHELASTIC_RESTART_COUNT
exec 9>held.$A.$RANK
flock -n 9 || echo "two of $A.$RANK" >>overlaps
for held in held.*; do
  case $held in held.$A.*) continue ;; esac
  flock -n -s $held rm -f $held || echo "$held meets $A.$RANK" >>overlaps
done
echo "up $RANK $A" >>up
)sh" + script;
}

bool NodesTest::WaitForUp(int workers, int attempt) const {
  return WaitFor(
      [&] { return Count(Read("up"), " " + std::to_string(attempt) + "\n") == workers; });
}

bool NodesTest::WaitForFiles(const std::vector<std::string>& names) const {
  return std::ranges::all_of(names, [&](const std::string& name) {
    return WaitFor([&] { return access(folder.Path(name).c_str(), F_OK) == 0; });
  });
}

void NodesTest::Touch(const std::string& name) const { std::ofstream(folder.Path(name)) << "\n"; }

void NodesTest::KillAgent(const Job& node, int signal_number) const {
  pid_t agent = 0;
  ASSERT_TRUE(WaitFor([&] { return (agent = AgentOf(node)) != 0; })) << Errors();
  kill(agent, signal_number);
}

void NodesTest::KillHost(const Job& node) const {
  pid_t agent = AgentOf(node);
  node.Signal(SIGKILL);
  if (agent == 0) return;
  kill(agent, SIGKILL);
  EXPECT_TRUE(WaitFor([&] { return IsOver(agent); })) << "its port is not free";
}

std::string NodesTest::Errors() const {
  std::string text;
  for (const auto& node : nodes) {
    text += "--- " + std::to_string(node->pid()) + "\n" + node->Out() + node->Err();
  }
  return text;
}

}  // namespace rankrun::testing

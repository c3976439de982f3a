#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/free_port.h"
#include "tests/process/harness.h"

// Jobs of several nodes whose agents are all on this machine.
namespace rankrun::testing {

using test::FreePort;

// Returns the pid of the agent, 0 without one. The guardian may have a helper
// process as well.
pid_t AgentOf(const Job& node);

struct NodesTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  // Starts `rankrun <flags of the job> <flags> sh -c script`. The script runs in
  // `folder`.
  Job& Start(const std::vector<std::string>& flags, const std::string& script);
  // Start a node with the coordinator, and one without.
  Job& StartHost(std::vector<std::string> flags, const std::string& script);
  Job& StartGuest(std::vector<std::string> flags, const std::string& script);

  // Returns a script that appends "up RANK ATTEMPT" to the file `up`. It writes to
  // `overlaps` if workers of another attempt are alive. Then it runs `script`.
  static std::string Stamped(const std::string& script);
  bool WaitForUp(int workers, int attempt) const;
  std::string Overlaps() const { return ReadText(folder.Path("overlaps")); }

  bool WaitForFiles(const std::vector<std::string>& names) const;  // of `folder`
  void Touch(const std::string& name) const;
  std::string Read(const std::string& name) const { return ReadText(folder.Path(name)); }
  void KillAgent(const Job& node, int signal_number) const;
  void KillHost(const Job& node) const;  // kills guardian and agent
  std::string Errors() const;            // of all nodes

  ScratchFolder folder;
  std::string port = std::to_string(FreePort());
  std::vector<std::string> job = {"--nnodes=2", "--node-timeout=10"};  // flags of every node
  std::string conf;                              // ",KEY=VALUE" of --rdzv-conf, on every node
  std::map<std::string, std::string> variables;  // of the next node
  std::function<void()> in_child;                // of the next node; runs before the exec
  std::vector<std::unique_ptr<Job>> nodes;
};

}  // namespace rankrun::testing

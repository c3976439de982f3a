#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/process/harness.h"

// Jobs of several nodes whose agents are all on this machine.
namespace rankrun::testing {

// A port that nobody listens at and that no client is given.
int FreePort();

int Count(const std::string& text, const std::string& part);

// The guardian may have a helper besides.
pid_t AgentOf(const Job& node);

struct NodesTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  // `rankrun <flags of the job> <flags> sh -c script`. In the script the current
  // folder is `folder`.
  Job& Start(const std::vector<std::string>& flags, const std::string& script);
  // With the coordinator, and without.
  Job& StartHost(std::vector<std::string> flags, const std::string& script);
  Job& StartGuest(std::vector<std::string> flags, const std::string& script);

  // A worker says "up RANK ATTEMPT" in the file `up`, and notes in `overlaps` if
  // workers of another attempt are alive.
  static std::string Stamped(const std::string& script);
  bool WaitForUp(int workers, int attempt) const;
  std::string Overlaps() const { return ReadText(folder.Path("overlaps")); }

  void Touch(const std::string& name) const;
  std::string Read(const std::string& name) const { return ReadText(folder.Path(name)); }
  void KillAgent(const Job& node, int signal_number) const;
  void KillHost(const Job& node) const;  // guardian and agent
  std::string Errors() const;            // of all nodes

  ScratchFolder folder;
  std::string port = std::to_string(FreePort());
  std::vector<std::string> job = {"--nnodes=2", "--node-timeout=10"};  // on all of them
  std::string conf;                                                    // ",KEY=VALUE", likewise
  std::map<std::string, std::string> variables;                        // of the next node
  std::vector<std::unique_ptr<Job>> nodes;
};

}  // namespace rankrun::testing

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/nodes_spec.h"
#include "launcher/note.h"
#include "launcher/rendezvous.h"
#include "launcher/scheduler.h"
#include "launcher/settings.h"

namespace rankrun::launcher {

struct SecretFile {
  std::string text;
  bool others_may_read = false;
};

// What else the plan for the nodes depends on.
struct NodesContext {
  const Scheduler& scheduler;
  std::string host_name;
  Environment environment;
  std::function<Result<SecretFile>(const std::string& path)> read_secret;
};

struct NodesPlan {
  agent::NodesSpec spec;
  Rendezvous rendezvous;              // of the workers
  std::vector<std::string> warnings;  // lines for standard error
};

// Reads what several nodes agree on. To be asked where --nnodes allows more
// than one. Pure, but for the file of the secret.
// Errors: kInvalid, one line that names the flag, variable or file, and what
// would be right.
Result<NodesPlan> ReadNodes(const Settings& settings, const NodesContext& context);

// The settings that only a job of several nodes looks at.
std::vector<Note> IgnoredOnOneNode(const Settings& settings);

// The variable that holds the secret itself.
inline constexpr const char* kSecretVariable = "RANKRUN_SECRET";

}  // namespace rankrun::launcher

#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/job/nodes_spec.h"
#include "launcher/plan/rendezvous.h"
#include "launcher/scheduler/scheduler.h"
#include "launcher/settings/note.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Content of the file that --secret-file names.
struct SecretFile {
  std::string text;
  bool others_may_read = false;
};

// Inputs of ReadNodes besides the settings.
struct NodesContext {
  const Scheduler& scheduler;
  std::string host_name;
  Environment environment;
  std::function<Result<SecretFile>(const std::string& path)> read_secret;
  bool secret_is_empty = false;  // RANKRUN_SECRET is set, but `environment` shows no empty value
};

// Part of the plan of a job of several nodes.
struct NodesPlan {
  agent::NodesSpec spec;
  Rendezvous rendezvous;              // for the workers
  std::vector<std::string> warnings;  // lines for standard error
};

// Reads the settings of a job of several nodes (--nnodes above 1). Pure, except
// for `context.read_secret`.
// Errors: kInvalid, one line that names the flag, variable or file, and the
// accepted values.
Result<NodesPlan> ReadNodes(const Settings& settings, const NodesContext& context);

// Returns a note for each setting that only a job of several nodes uses.
std::vector<Note> IgnoredOnOneNode(const Settings& settings);

// Name of the variable that holds the secret.
inline constexpr const char* kSecretVariable = "RANKRUN_SECRET";

}  // namespace rankrun::launcher

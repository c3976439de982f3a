#pragma once

#include <string>
#include <vector>

#include "agent/job/nodes_spec.h"
#include "launcher/plan/rendezvous.h"
#include "launcher/plan/secret_settings.h"
#include "launcher/scheduler/scheduler.h"
#include "launcher/settings/note.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Inputs of ReadNodes besides the settings.
struct NodesContext {
  const Scheduler& scheduler;
  std::string host_name;
  SecretContext secret;  // ReadNodes sets `is_exposed`
};

// Part of the plan of a job of several nodes.
struct NodesPlan {
  agent::NodesSpec spec;
  Rendezvous rendezvous;              // for the workers
  std::vector<std::string> warnings;  // lines for standard error
};

// Reads the settings of a job of several nodes (--nnodes above 1). Pure, except
// for the functions of `context.secret`.
// Errors: kInvalid, one line that names the flag, variable or file, and the
// accepted values.
Result<NodesPlan> ReadNodes(const Settings& settings, const NodesContext& context);

// Returns a note for each setting that only a job of several nodes uses.
std::vector<Note> IgnoredOnOneNode(const Settings& settings);

}  // namespace rankrun::launcher

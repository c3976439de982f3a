#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/nodes_spec.h"
#include "launcher/environment.h"
#include "launcher/settings.h"

namespace rankrun::launcher {

// A value, and the variable that has it.
template <typename Value>
struct Said {
  Value value{};
  std::string variable = {};

  bool operator==(const Said&) const = default;
};

// What the scheduler that has started us says about the nodes of the job. All
// empty: there is none.
struct Scheduler {
  std::optional<Said<int>> nodes;                 // that it has started us on
  std::optional<Said<int>> node_index;            // this node among them
  std::optional<Said<std::string>> job;           // a name that is the same on all nodes
  std::optional<Said<agent::Endpoint>> endpoint;  // at the node of index 0
  std::string node_name = {};                     // what it calls this node
  std::optional<Said<int>> gpus;                  // that we may use
  std::string no_nodes = {};     // why the number of nodes must be typed: a sentence
  std::string no_endpoint = {};  // why the endpoint must be
  std::string advice = {};       // for who has started us outside of what it runs
};

// What it is read from.
struct SchedulerSources {
  Environment environment;
  std::string host_name;
  std::function<std::string()> hosts_file;  // the text of /etc/hosts
};

// SLURM, an indexed job of Kubernetes, Open MPI, or another PMI. Inside of a
// worker none: what it says is not about us. Pure, but for what `sources` do.
Scheduler ReadScheduler(const SchedulerSources& sources);

// Its part of the settings, where `stronger` ones leave a gap.
// Errors: kInvalid, one line that names the variable and what would be right.
Result<SettingsSource> SettingsOfScheduler(const Scheduler& scheduler, const Settings& stronger);

// A line for standard error; empty: nothing is to be said.
std::string AdviceOf(const Scheduler& scheduler, const Settings& settings);

}  // namespace rankrun::launcher

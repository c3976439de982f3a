#pragma once

#include <functional>
#include <optional>
#include <string>

#include "agent/job/nodes_spec.h"
#include "launcher/settings/environment.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// A value and the variable that it comes from.
template <typename Value>
struct SourcedValue {
  Value value{};
  std::string variable = {};

  bool operator==(const SourcedValue&) const = default;
};

// Facts from the scheduler that started us. All fields are empty without a
// scheduler.
struct Scheduler {
  std::optional<SourcedValue<int>> nodes;                 // number of nodes that run rankrun
  std::optional<SourcedValue<int>> node_index;            // index of this node among them
  std::optional<SourcedValue<std::string>> job;           // name of the job, equal on all nodes
  std::optional<SourcedValue<agent::Endpoint>> endpoint;  // on the node with index 0
  std::string node_name = {};                             // the scheduler's name of this node
  std::optional<SourcedValue<int>> gpus;                  // number of GPUs that we may use
  std::string no_nodes = {};                              // sentence: why --nnodes must be typed
  std::string no_endpoint = {};  // sentence: why the endpoint must be typed
  std::string advice = {};       // warning if rankrun runs outside of a step of the job
  std::string more_cpus = {};    // flag by which it gives us more CPUs of this machine
};

// Sources of these facts.
struct SchedulerSources {
  Environment environment;
  std::string host_name;
  std::function<std::string()> hosts_file;  // the text of /etc/hosts
};

// Reads the facts of SLURM, an indexed job of Kubernetes, Open MPI, or another
// MPI with PMI. Returns nothing inside of a worker, because its variables
// describe the worker. Pure, except for the functions of `sources`.
Scheduler ReadScheduler(const SchedulerSources& sources);

// Returns settings from the scheduler for flags that `stronger` does not set.
// Errors: kInvalid, one line that names the variable and the accepted values.
Result<SettingsSource> SettingsOfScheduler(const Scheduler& scheduler, const Settings& stronger);

// Returns a warning for standard error; empty: none.
std::string AdviceOf(const Scheduler& scheduler, const Settings& settings);

}  // namespace rankrun::launcher

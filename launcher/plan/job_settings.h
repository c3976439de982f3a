#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/job/job_spec.h"
#include "agent/machine/accelerators.h"
#include "agent/machine/machine_share.h"
#include "launcher/plan/nodes_settings.h"
#include "launcher/plan/program.h"
#include "launcher/plan/torch_devices.h"
#include "launcher/plan/worker_count.h"
#include "launcher/scheduler/scheduler.h"
#include "launcher/settings/note.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Facts about this machine and process that a plan depends on.
struct Machine {
  Environment environment;
  std::vector<std::string> variables;  // the whole environment, "NAME=value"
  // Finds the accelerators for workers with this environment.
  std::function<agent::Accelerators(const std::vector<std::string>&)> accelerators;
  std::function<Result<std::vector<std::string>>(const agent::Accelerators&)> visible_gpus;
  int cpus;                          // number of CPUs in our affinity mask
  int online_cpus = 0;               // number of all CPUs of this machine
  std::optional<rlim_t> open_files;  // soft limit before rankrun raised it
  std::string random_id;             // run id of a job without --rdzv-id
  // Asks the PyTorch of workers with this environment.
  std::function<Result<TorchDevices>(const std::vector<std::string>&)> ask_torch = {};
  // Returns the number that our container lets us use at once.
  std::function<std::optional<int>()> cpu_limit = {};
  std::optional<pid_t> mpirun = {};  // the process of an MPI launcher that has started us
  std::string host_name = {};
  FullHostName full_host_name = {};
  std::function<Result<SecretFile>(const std::string& path)> read_secret = {};
  std::function<Result<std::string>(const std::string& path)> read_own_secret = {};
  std::function<Result<MungeSecret>()> make_munge_secret = {};
  bool is_container = false;
  Scheduler scheduler = {};
};

// The job that the settings describe. `spec.program` is still empty.
struct JobPlan {
  agent::JobSpec spec;
  std::string why_workers;            // reason for the number of workers; empty: typed
  std::vector<Note> ignored;          // settings that have no effect
  std::vector<std::string> warnings;  // lines for standard error
  agent::MachineShare share;          // share of each worker; for --explain and --dry-run only
};

// Makes the plan of a job. `command` is the name by which rankrun was started;
// "torchrun" changes some defaults. Pure, except for the functions of
// `machine`.
// Errors: kInvalid, one line that names the flag, variable or file, and the
// accepted values.
Result<JobPlan> MakeJobPlan(const Settings& settings, std::string_view command,
                            const Machine& machine);

// Returns how to execute `program`, a program with its arguments.
// Errors: kInvalid if `program` is empty, or if flags exclude each other.
Result<ProgramRequest> MakeProgramRequest(const Settings& settings, std::string_view command,
                                          const std::vector<std::string>& program);

}  // namespace rankrun::launcher

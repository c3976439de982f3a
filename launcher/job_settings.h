#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/job_spec.h"
#include "agent/machine_share.h"
#include "launcher/nodes_settings.h"
#include "launcher/note.h"
#include "launcher/program.h"
#include "launcher/scheduler.h"
#include "launcher/settings.h"
#include "launcher/worker_count.h"

namespace rankrun::launcher {

// What a job depends on besides its settings.
struct Machine {
  Environment environment;
  std::vector<std::string> variables;  // all of the environment, "NAME=value"
  // The GPUs that a CUDA_VISIBLE_DEVICES leaves; nothing: without one.
  std::function<Result<std::vector<std::string>>(const std::optional<std::string>&)> visible_gpus;
  int cpus;                          // in our affinity mask
  std::optional<rlim_t> open_files;  // soft limit as the user had it
  std::string random_id;             // the name of a job that was given none
  std::string host_name = {};
  std::function<Result<SecretFile>(const std::string& path)> read_secret = {};
  Scheduler scheduler = {};
};

// A job as the settings want it. What it executes is not in `spec` yet.
struct JobPlan {
  agent::JobSpec spec;
  std::string why_workers;            // why there are so many; empty: a number was typed
  std::vector<Note> ignored;          // settings that have no effect
  std::vector<std::string> warnings;  // lines for standard error
  agent::MachineShare share;          // what each worker gets; for --explain and --dry-run only
};

// `command` is the name that rankrun was started by; "torchrun" changes some
// defaults. Pure, but for what `machine` does.
// Errors: kInvalid, one line that names the flag, variable or file, and what
// would be right.
Result<JobPlan> MakeJobPlan(const Settings& settings, std::string_view command,
                            const Machine& machine);

// How the words of the command line are to be executed.
// Errors: kInvalid if there are none, or if flags exclude each other.
Result<ProgramRequest> MakeProgramRequest(const Settings& settings, std::string_view command,
                                          const std::vector<std::string>& words);

}  // namespace rankrun::launcher

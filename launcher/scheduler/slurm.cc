#include "launcher/scheduler/slurm.h"

#include <algorithm>
#include <cstdint>

#include "base/parse_number.h"
#include "launcher/flags/text.h"
#include "launcher/scheduler/slurm_grammar.h"

namespace rankrun::launcher {
namespace {

// Steps from this number on are not started by srun, but are batch scripts and
// interactive shells.
constexpr uint32_t kFirstSpecialStep = 0xfffffff0;

// Range of ports, chosen by job and step: below Linux's ephemeral ports (32768 to
// 60999), without torchrun's 29400 and 29500.
constexpr uint64_t kFirstPort = 20'000;
constexpr uint64_t kPorts = 9'000;
constexpr uint64_t kStepsApart = 101;  // coprime to kPorts, so that all ports are used

uint16_t PortOf(uint64_t job, uint64_t step) {
  return static_cast<uint16_t>(kFirstPort + (job % kPorts * kStepsApart + step) % kPorts);
}

class SlurmReader {
 public:
  explicit SlurmReader(const Environment& environment) : environment_(environment) {}

  std::optional<Scheduler> Read() {
    job_ = First({"SLURM_JOB_ID", "SLURM_JOBID"});
    if (!job_) return std::nullopt;
    result_.node_name = environment_("SLURMD_NODENAME").value_or("");
    if (auto gpus = First({"SLURM_GPUS_ON_NODE"})) {
      auto count = ParseGpuCount(gpus->value);
      if (count && *count > 0) result_.gpus = SourcedValue<int>{*count, gpus->variable};
    }
    auto step = First({"SLURM_STEP_ID", "SLURM_STEPID"});
    auto number = step ? ParseNumber<uint32_t>(step->value) : std::nullopt;
    if (!number || *number >= kFirstSpecialStep || !environment_("SLURM_PROCID")) {
      ReadOutside();
    } else {
      ReadStep(*number);
    }
    return std::move(result_);
  }

 private:
  // Returns the first of these variables that is set.
  std::optional<SourcedValue<std::string>> First(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (auto value = environment_(name)) return SourcedValue<std::string>{*value, name};
    }
    return std::nullopt;
  }

  std::optional<SourcedValue<int>> Number(std::initializer_list<const char*> names) const {
    auto text = First(names);
    auto number = text ? ParseNumber<int>(text->value) : std::nullopt;
    if (!number || *number < 0) return std::nullopt;
    return SourcedValue<int>{*number, text->variable};
  }

  // rankrun runs in a batch script or in the shell of salloc.
  void ReadOutside() {
    result_.more_cpus = "sbatch or salloc with --cpus-per-task N";
    auto nodes = Number({"SLURM_JOB_NUM_NODES", "SLURM_NNODES"});
    std::string job = "SLURM job " + job_->value;
    std::string how = "; to use its nodes: srun --ntasks-per-node=1 rankrun ...";
    if (result_.node_name.empty()) {
      result_.advice = job + " does not include this host, on which the workers will run" + how;
    } else if (nodes && nodes->value > 1) {
      result_.advice = job + " has " + std::to_string(nodes->value) +
                       " nodes, but rankrun runs on this one only" + how;
    }
  }

  void ReadStep(uint32_t step) {
    result_.more_cpus = "srun --cpus-per-task N, or --cpu-bind=none";
    ReadNodes();
    result_.job =
        SourcedValue<std::string>{job_->value + "." + std::to_string(step), job_->variable};
    result_.node_index = Number({"SLURM_NODEID"});
    ReadEndpoint(step);
  }

  void ReadNodes() {
    auto nodes = Number({"SLURM_STEP_NUM_NODES", "SLURM_NNODES"});
    if (!nodes || nodes->value < 1) {
      result_.no_nodes =
          "SLURM_STEP_NUM_NODES: the number of nodes is missing or wrong; "
          "want --nnodes N";
      return;
    }
    result_.nodes = nodes;
    auto tasks = First({"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
    auto counts = tasks ? ParseCounts(tasks->value) : std::nullopt;
    int most = counts ? *std::ranges::max_element(*counts) : 1;
    if (most <= 1) return;
    result_.no_nodes = tasks->variable + ": srun starts rankrun " + std::to_string(most) +
                       " times on a node, but rankrun starts the workers itself: want srun "
                       "--ntasks-per-node=1, or --standalone for one job per process";
  }

  void ReadEndpoint(uint32_t step) {
    auto list = First({"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
    auto job = ParseNumber<uint64_t>(job_->value);
    auto names = list ? ParseNodeList(list->value) : Error{ErrorCode::kInvalid, "it is not set"};
    std::string name = list ? list->variable : "SLURM_STEP_NODELIST";
    if (!names) {
      result_.no_endpoint =
          name + ": " + names.error().message + "; want --rdzv-endpoint HOST:PORT";
    } else if (!job) {
      result_.no_endpoint =
          job_->variable + ": want a number" + Got(job_->value) + "; or --rdzv-endpoint HOST:PORT";
    } else if (!result_.node_index) {
      result_.no_endpoint = "SLURM_NODEID: it is not set; want --rdzv-endpoint HOST:PORT";
    } else {
      result_.endpoint =
          SourcedValue<agent::Endpoint>{agent::Endpoint{names->front(), PortOf(*job, step)}, name};
    }
  }

  const Environment& environment_;
  std::optional<SourcedValue<std::string>> job_;
  Scheduler result_;
};

}  // namespace

std::optional<Scheduler> ReadSlurm(const Environment& environment) {
  return SlurmReader(environment).Read();
}

}  // namespace rankrun::launcher

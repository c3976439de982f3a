#include "agent/worker/worker_environment.h"

#include <map>
#include <utility>

#include "agent/machine/worker_gpus.h"
#include "agent/report/torch_calls.h"
#include "base/format.h"
#include "base/process/spawn.h"

namespace rankrun::agent {
namespace {

using Variables = std::map<std::string, std::string>;

Variables Parse(const std::vector<std::string>& environment) {
  Variables variables;
  for (const std::string& entry : environment) {
    size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;  // not a variable
    variables.insert_or_assign(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

std::string SignalNames(const std::vector<int>& numbers) {
  std::string names;
  for (int number : numbers) names += (names.empty() ? "" : ",") + SignalName(number);
  return names;
}

// All workers have the same role.
void SetWorld(Variables& v, const JobSpec& spec, const NodePlace& node) {
  v["WORLD_SIZE"] = v["ROLE_WORLD_SIZE"] = std::to_string(node.world_size);
  v["LOCAL_WORLD_SIZE"] = std::to_string(spec.workers);
  v["GROUP_RANK"] = std::to_string(node.node_rank);
  v["GROUP_WORLD_SIZE"] = std::to_string(node.node_count);
  v["ROLE_NAME"] = spec.role;
  v["MASTER_ADDR"] = node.master_addr;
  v["MASTER_PORT"] = std::to_string(node.master_port);
  if (!node.interface.empty()) {
    v.try_emplace("GLOO_SOCKET_IFNAME", node.interface);
    v.try_emplace("NCCL_SOCKET_IFNAME", node.interface);
  }
}

void SetElastic(Variables& v, const JobSpec& spec, const AttemptPlace& place) {
  v["TORCHELASTIC_RESTART_COUNT"] = std::to_string(place.node.attempt);
  v["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(spec.max_restarts);
  v["TORCHELASTIC_RUN_ID"] = spec.run_id;
  v["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // as Python writes it; workers compare the text
  v["TORCHELASTIC_SIGNALS_TO_HANDLE"] = SignalNames(spec.end_signals);
  if (!place.timer_file.empty()) v["TORCHELASTIC_TIMER_FILE"] = place.timer_file;
}

void SetOurOwn(Variables& v, const AttemptPlace& place) {
  v.erase("RANKRUN_SAVE_FIFO");  // of an outer launcher
  if (!place.save_fifo.empty()) v["RANKRUN_SAVE_FIFO"] = place.save_fifo;
  v.erase("RANKRUN_BREAKPOINT_PIPE");
  if (!place.breakpoint_pipe.empty()) v["RANKRUN_BREAKPOINT_PIPE"] = place.breakpoint_pipe;
  if (!place.trace_dir.empty()) v["RANKRUN_TRACE"] = place.trace_dir;
  v.erase("RANKRUN_KEEP");  // a worker cannot opt out of the end of its job
}

// PyTorch before 2.9 knows the older variable only, but later versions warn of it.
void SetTorchDumps(Variables& v, const AttemptPlace& place) {
  if (place.torch_dumps.empty() || v.contains("TORCH_NCCL_DEBUG_INFO_TEMP_FILE")) return;
  v.try_emplace(kTorchDumpVariable, place.torch_dumps);
}

// Removes the variables that Of sets.
void RemoveOfWorkers(Variables& v, const JobSpec& spec) {
  for (const char* name : {"RANK", "ROLE_RANK", "LOCAL_RANK", "TORCHELASTIC_ERROR_FILE",
                           "RANKRUN_STATUS_FD", "RANKRUN_STATUS_PATH"}) {
    v.erase(name);
  }
  if (!GpusOfWorker(spec, 0)) return;
  v.erase(spec.gpu_variable);
  // The name that AMD's GPUs have by CUDA. PyTorch refuses two different values.
  if (spec.gpu_variable == "HIP_VISIBLE_DEVICES") v.erase("CUDA_VISIBLE_DEVICES");
}

}  // namespace

WorkerEnvironment::WorkerEnvironment(const JobSpec& spec, const AttemptPlace& place)
    : spec_(spec), first_rank_(place.node.first_rank) {
  Variables v = Parse(spec.environment);
  SetWorld(v, spec, place.node);
  SetElastic(v, spec, place);
  SetOurOwn(v, place);
  v.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  SetTorchDumps(v, place);
  RemoveOfWorkers(v, spec);
  has_threads_ = v.contains("OMP_NUM_THREADS");
  for (const auto& [name, value] : v) common_.push_back(name + "=" + value);
}

std::vector<std::string> WorkerEnvironment::Of(const WorkerPlace& worker) const {
  constexpr size_t kOfWorker = 8;  // variables, at most
  std::vector<std::string> environment;
  environment.reserve(common_.size() + kOfWorker);
  environment = common_;
  const std::string rank = std::to_string(first_rank_ + worker.local_rank);
  // With a virtual local rank, it is the index of the only visible GPU.
  const int local_rank = spec_.virtual_local_rank ? 0 : worker.local_rank;
  environment.push_back("RANK=" + rank);
  environment.push_back("ROLE_RANK=" + rank);
  environment.push_back("LOCAL_RANK=" + std::to_string(local_rank));
  environment.push_back("TORCHELASTIC_ERROR_FILE=" + worker.error_file);
  if (!has_threads_) environment.push_back("OMP_NUM_THREADS=" + std::to_string(worker.threads));
  if (auto gpus = GpusOfWorker(spec_, worker.local_rank)) {
    environment.push_back(spec_.gpu_variable + "=" + *gpus);
  }
  if (!worker.status_path.empty()) {
    environment.push_back("RANKRUN_STATUS_FD=" + std::to_string(kStatusPageFd));
    environment.push_back("RANKRUN_STATUS_PATH=" + worker.status_path);
  }
  return environment;
}

}  // namespace rankrun::agent

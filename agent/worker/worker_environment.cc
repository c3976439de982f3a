#include "agent/worker/worker_environment.h"

#include <map>
#include <utility>

#include "agent/machine/worker_gpus.h"
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
void SetRanks(Variables& v, const JobSpec& spec, const WorkerPlace& place) {
  v["RANK"] = v["ROLE_RANK"] = std::to_string(place.node.first_rank + place.local_rank);
  v["LOCAL_RANK"] = std::to_string(place.local_rank);
  if (spec.virtual_local_rank) v["LOCAL_RANK"] = "0";  // the index of the only visible GPU
  v["WORLD_SIZE"] = v["ROLE_WORLD_SIZE"] = std::to_string(place.node.world_size);
  v["LOCAL_WORLD_SIZE"] = std::to_string(spec.workers);
  v["GROUP_RANK"] = std::to_string(place.node.node_rank);
  v["GROUP_WORLD_SIZE"] = std::to_string(place.node.node_count);
  v["ROLE_NAME"] = spec.role;
}

void SetElastic(Variables& v, const JobSpec& spec, const WorkerPlace& place) {
  v["TORCHELASTIC_RESTART_COUNT"] = std::to_string(place.node.attempt);
  v["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(spec.max_restarts);
  v["TORCHELASTIC_RUN_ID"] = spec.run_id;
  v["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // as Python writes it; workers compare the text
  v["TORCHELASTIC_ERROR_FILE"] = place.error_file;
  v["TORCHELASTIC_SIGNALS_TO_HANDLE"] = SignalNames(spec.end_signals);
  if (!place.timer_file.empty()) v["TORCHELASTIC_TIMER_FILE"] = place.timer_file;
}

}  // namespace

std::vector<std::string> WorkerEnvironment(const JobSpec& spec, const WorkerPlace& place) {
  Variables v = Parse(spec.environment);
  SetRanks(v, spec, place);
  SetElastic(v, spec, place);
  v["MASTER_ADDR"] = place.node.master_addr;
  v["MASTER_PORT"] = std::to_string(place.node.master_port);
  if (!place.node.interface.empty()) {
    v.try_emplace("GLOO_SOCKET_IFNAME", place.node.interface);
    v.try_emplace("NCCL_SOCKET_IFNAME", place.node.interface);
  }
  v.try_emplace("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  v.try_emplace("OMP_NUM_THREADS", std::to_string(place.threads));
  if (auto gpus = CudaVisibleDevices(spec, place.local_rank)) v["CUDA_VISIBLE_DEVICES"] = *gpus;
  v.erase("RANKRUN_STATUS_FD");  // set by an outer launcher
  v.erase("RANKRUN_STATUS_PATH");
  if (!place.status_path.empty()) {
    v["RANKRUN_STATUS_FD"] = std::to_string(kStatusPageFd);
    v["RANKRUN_STATUS_PATH"] = place.status_path;
  }
  if (!place.trace_dir.empty()) v["RANKRUN_TRACE"] = place.trace_dir;
  v.erase("RANKRUN_SAVE_FIFO");
  if (!place.save_fifo.empty()) v["RANKRUN_SAVE_FIFO"] = place.save_fifo;
  v.erase("RANKRUN_BREAKPOINT_PIPE");
  if (!place.breakpoint_pipe.empty()) v["RANKRUN_BREAKPOINT_PIPE"] = place.breakpoint_pipe;
  v.erase("RANKRUN_KEEP");  // a worker cannot opt out of the end of its job
  std::vector<std::string> environment;
  for (const auto& [name, value] : v) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace rankrun::agent

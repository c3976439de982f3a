#include "agent/worker_environment.h"

#include <map>
#include <utility>

#include "agent/worker_gpus.h"
#include "base/format.h"
#include "base/spawn.h"

namespace rankrun::agent {
namespace {

using Variables = std::map<std::string, std::string>;

Variables Parse(const std::vector<std::string>& environment) {
  Variables variables;
  for (const std::string& entry : environment) {
    size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;  // no name: not a variable
    variables.insert_or_assign(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return variables;
}

std::string SignalNames(const std::vector<int>& numbers) {
  std::string names;
  for (int number : numbers) names += (names.empty() ? "" : ",") + SignalName(number);
  return names;
}

// Every worker is in one role.
void SetRanks(Variables& v, const JobSpec& spec, const WorkerPlace& place) {
  v["RANK"] = v["ROLE_RANK"] = std::to_string(place.node.first_rank + place.local_rank);
  v["LOCAL_RANK"] = std::to_string(place.local_rank);
  if (spec.virtual_local_rank) v["LOCAL_RANK"] = "0";  // of the one GPU that it sees
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
  v["TORCHELASTIC_USE_AGENT_STORE"] = "True";  // Python's spelling: workers compare the text
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
  v.erase("RANKRUN_STATUS_FD");  // those of a launcher around us
  v.erase("RANKRUN_STATUS_PATH");
  if (!place.status_path.empty()) {
    v["RANKRUN_STATUS_FD"] = std::to_string(kStatusPageFd);
    v["RANKRUN_STATUS_PATH"] = place.status_path;
  }
  v.erase("RANKRUN_SAVE_FIFO");
  if (!place.save_fifo.empty()) v["RANKRUN_SAVE_FIFO"] = place.save_fifo;
  v.erase("RANKRUN_KEEP");  // a worker cannot opt out of its job's end
  std::vector<std::string> environment;
  for (const auto& [name, value] : v) environment.push_back(name + "=" + value);
  return environment;
}

std::optional<std::string> VariableOf(const std::vector<std::string>& environment,
                                      const std::string& name) {
  std::string start = name + "=";
  std::optional<std::string> value;
  for (const std::string& entry : environment) {
    if (entry.starts_with(start)) value = entry.substr(start.size());
  }
  return value;
}

}  // namespace rankrun::agent

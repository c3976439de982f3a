#include "agent/machine/machine_share.h"

#include <algorithm>

#include "agent/job/environment.h"
#include "agent/machine/binding.h"
#include "agent/machine/gpus.h"
#include "agent/machine/topology_loader.h"
#include "agent/machine/worker_gpus.h"

namespace rankrun::agent {
namespace {

// Returns the GPUs of worker 0, 1, ... whose place in the machine can be found:
// none that are not NVIDIA's.
Result<std::vector<std::string>> GpusOf(const JobSpec& spec) {
  if (spec.gpu_variable != JobSpec().gpu_variable) return std::vector<std::string>();
  if (spec.gpus) return *spec.gpus;
  return VisibleGpus(VariableOf(spec.environment, "CUDA_VISIBLE_DEVICES"));
}

Result<MachineShare> Bind(const JobSpec& spec, const Cpus& allowed) {
  auto gpus = GpusOf(spec);
  if (!gpus) return std::move(gpus).error();
  auto gpu_nodes = GpuNumaNodes(*gpus);
  if (!gpu_nodes && NamedGpus(spec)) return std::move(gpu_nodes).error().In(OriginOfGpus(spec));
  if (!gpu_nodes) return std::move(gpu_nodes).error();
  auto machine = LoadTopology(TopologyPluginFolders());
  if (!machine) return std::move(machine).error();
  MachineShare share;
  share.topology = Within(*machine, allowed);
  share.cores = static_cast<int>(share.topology.cores.size());
  auto plan = PlanBinding(share.topology, spec.binding, spec.workers, *gpu_nodes);
  if (!plan) return std::move(plan).error();
  share.cpus = std::move(*plan);
  share.threads = CoresEach(share.topology, share.cpus);
  if (spec.cpu_limit && *spec.cpu_limit < share.cores) {
    const int most = std::max(1, *spec.cpu_limit / spec.workers);
    for (int& threads : share.threads) threads = std::min(threads, most);
    share.cores = *spec.cpu_limit;
    share.is_limited = true;
  }
  if (gpu_nodes->size() >= share.cpus.size()) share.gpus = std::move(*gpus);
  return share;
}

}  // namespace

Result<MachineShare> ShareMachine(const JobSpec& spec) {
  auto allowed = AllowedCpus();
  if (!allowed) return std::move(allowed).error();
  if (spec.binding != Binding::kNone) {
    auto share = Bind(spec, *allowed);
    if (!share) return std::move(share).error().In("bind the workers");
    return share;
  }
  const int cpus = static_cast<int>(allowed->size());
  const int cores = std::min(cpus, spec.cpu_limit.value_or(cpus));
  return MachineShare{.cores = cores,
                      .is_limited = cores < cpus,
                      .threads = std::vector<int>(static_cast<size_t>(spec.workers),
                                                  std::max(1, cores / spec.workers)),
                      .cpus = {},
                      .topology = {},
                      .gpus = {}};
}

Cpus CpusOf(const MachineShare& share, int local_rank) {
  return share.cpus.empty() ? Cpus{} : share.cpus[static_cast<size_t>(local_rank)];
}

std::string ThreadsNotice(const JobSpec& spec, const MachineShare& share) {
  if (spec.workers < 2 || VariableOf(spec.environment, "OMP_NUM_THREADS")) return "";
  auto [fewest, most] = std::ranges::minmax(share.threads);
  std::string value = std::to_string(fewest);
  if (most > fewest) value += " to " + std::to_string(most);
  std::string cores = std::to_string(share.cores) + (share.cores == 1 ? " core" : " cores");
  if (share.is_limited) cores += " by the container's limit";
  std::string why = share.cpus.empty() || share.is_limited
                        ? cores + " / " + std::to_string(spec.workers) + " workers"
                        : "the cores that each worker is bound to";
  return "rankrun: OMP_NUM_THREADS is " + value + ": " + why + "; set it to choose another\n";
}

}  // namespace rankrun::agent

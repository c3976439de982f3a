#include "launcher/scheduler/scheduler.h"

#include <utility>

#include "base/net/host_port.h"
#include "launcher/scheduler/kubernetes.h"
#include "launcher/scheduler/mpi.h"
#include "launcher/scheduler/slurm.h"
#include "launcher/settings/node_range.h"

namespace rankrun::launcher {
namespace {

bool IsWorker(const Environment& environment) {
  bool of_torchrun = environment("RANK") && environment("TORCHELASTIC_RUN_ID");
  return of_torchrun || environment("RANKRUN_STATUS_PATH");
}

bool IsTyped(const Settings& settings, std::string_view name) {
  return settings.NonEmptyText(name).has_value();
}

// Returns whether the settings give an address for the rendezvous.
bool HasAddress(const Settings& settings) {
  return IsTyped(settings, "rdzv-endpoint") || IsTyped(settings, "master-addr");
}

Error Invalid(const std::string& text) { return {ErrorCode::kInvalid, text}; }

class Filler {
 public:
  Filler(const Scheduler& scheduler, const Settings& stronger)
      : scheduler_(scheduler), stronger_(stronger) {}

  Result<SettingsSource> Fill() {
    if (stronger_.IsOn("standalone")) return std::move(source_);
    bool typed = IsTyped(stronger_, "nnodes");
    if (!typed && !scheduler_.no_nodes.empty()) return Invalid(scheduler_.no_nodes);
    int most = scheduler_.nodes ? scheduler_.nodes->value : 1;
    if (most > 1) Set("nnodes", std::to_string(most), scheduler_.nodes->variable);
    if (typed) {
      auto range = ReadNodeRange(stronger_);
      most = range ? range->max : 1;  // the reader of --nnodes reports the error
    }
    if (most <= 1) return std::move(source_);
    if (auto set = SetRendezvous(); !set) return std::move(set).error();
    if (!IsTyped(stronger_, "rdzv-id") && scheduler_.job) {
      Set("rdzv-id", scheduler_.job->value, scheduler_.job->variable);
    }
    return std::move(source_);
  }

 private:
  void Set(const std::string& name, std::string value, const std::string& variable) {
    source_.emplace(name, Setting{{std::move(value)}, variable});
  }

  Result<void> SetRendezvous() {
    bool has_address = HasAddress(stronger_);
    if (!has_address && !scheduler_.no_endpoint.empty()) return Invalid(scheduler_.no_endpoint);
    bool has_endpoint = !has_address && scheduler_.endpoint;
    bool port_typed = stronger_.Has("master-port");
    std::string backend = stronger_.Text("rdzv-backend").value_or("");
    if (has_endpoint && backend.empty() && !port_typed) {
      backend = "c10d";
      Set("rdzv-backend", backend, scheduler_.endpoint->variable);
    }
    bool is_static = backend.empty() || backend == "static";
    if (has_endpoint && is_static && port_typed) {
      Set("master-addr", scheduler_.endpoint->value.host, scheduler_.endpoint->variable);
    } else if (has_endpoint) {
      const auto& [endpoint, variable] = *scheduler_.endpoint;
      Set("rdzv-endpoint", HostPortText(endpoint.host, endpoint.port), variable);
    }
    if (is_static && scheduler_.node_index && !stronger_.Has("node-rank")) {
      const auto& index = *scheduler_.node_index;
      Set("node-rank", std::to_string(index.value), index.variable);
    }
    return {};
  }

  const Scheduler& scheduler_;
  const Settings& stronger_;
  SettingsSource source_;
};

}  // namespace

Scheduler ReadScheduler(const SchedulerSources& sources) {
  const Environment& environment = sources.environment;
  if (IsWorker(environment)) return {};
  // An mpirun may use srun itself, so its variables come before those of SLURM.
  if (auto found = ReadOpenMpi(environment)) return *found;
  if (environment("MPI_LOCALNRANKS")) {
    if (auto found = ReadPmi(environment)) return *found;
  }
  if (auto found = ReadSlurm(environment)) return *found;
  if (auto found = ReadKubernetes(sources)) return *found;
  return ReadPmi(environment).value_or(Scheduler{});
}

Result<SettingsSource> SettingsOfScheduler(const Scheduler& scheduler, const Settings& stronger) {
  return Filler(scheduler, stronger).Fill();
}

std::string AdviceOf(const Scheduler& scheduler, const Settings& settings) {
  if (settings.IsOn("standalone") || HasAddress(settings)) return "";
  auto range = ReadNodeRange(settings);
  bool one_typed = IsTyped(settings, "nnodes") && range && range->max == 1;
  return one_typed ? "" : scheduler.advice;
}

}  // namespace rankrun::launcher

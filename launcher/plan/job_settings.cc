#include "launcher/plan/job_settings.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "agent/job/environment.h"
#include "base/net/host_port.h"
#include "base/parse_number.h"
#include "base/version.h"
#include "launcher/flags/flags.h"
#include "launcher/flags/text.h"
#include "launcher/plan/observer_settings.h"
#include "launcher/plan/output_settings.h"
#include "launcher/plan/rendezvous.h"
#include "launcher/scheduler/mpi.h"
#include "launcher/settings/node_range.h"
#include "launcher/settings/service_link.h"
#include "launcher/settings/signal_names.h"

namespace rankrun::launcher {
namespace {

using agent::Binding;

struct BindingName {
  std::string_view name;
  Binding binding;
};

constexpr std::array<BindingName, 4> kBindings = {{{"none", Binding::kNone},
                                                   {"core", Binding::kCore},
                                                   {"numa", Binding::kNuma},
                                                   {"socket", Binding::kSocket}}};
constexpr std::array<BindingName, 4> kNumaBindings = {{{"node", Binding::kNuma},
                                                       {"socket", Binding::kSocket},
                                                       {"exclusive", Binding::kExclusive},
                                                       {"core-complex", Binding::kCoreComplex}}};

// A flag that has no effect, whatever its value.
struct NoEffect {
  std::string_view name;
  std::string_view why;
};
constexpr std::array<NoEffect, 2> kNoEffect = {
    {{"monitor-interval", "rankrun sees each exit at once"},
     {"start-method", "every worker is a new process"}}};

// Returns whether workers must not get this entry of the environment:
// RANKRUN_SECRET=..., RANKRUN_SECRET_FILE=...
bool IsAboutSecret(std::string_view entry) {
  std::string_view name = entry.substr(0, entry.find('='));
  return name == kSecretVariable || name == kSecretFileVariable;
}

std::optional<Binding> ByName(const std::array<BindingName, 4>& names,
                              const std::optional<std::string>& name) {
  for (const BindingName& known : names) {
    if (known.name == name) return known.binding;
  }
  return std::nullopt;
}

class Planner {
 public:
  Planner(const Settings& settings, std::string_view command, const Machine& machine)
      : settings_(settings),
        as_torchrun_(HasTorchrunDefaults(command)),
        is_launch_(command == kRankrunLaunch),
        machine_(machine) {}

  Result<JobPlan> Plan() {
    if (settings_.Has("logs-specs")) {
      return settings_.Wrong("logs-specs",
                             "names a Python class, which rankrun cannot load; "
                             "use --log-dir, --redirects and --tee");
    }
    for (auto step : {&Planner::PlanEnvironment, &Planner::PlanWorkers, &Planner::PlanNodes,
                      &Planner::PlanBinding, &Planner::PlanSignals, &Planner::PlanOutput}) {
      if (auto planned = (this->*step)(); !planned) return std::move(planned).error();
    }
    PlanSupervision();
    if (is_launch_) {
      plan_.warnings.emplace_back(
          "the name rankrun-launch is deprecated: want rankrun, and LOCAL_RANK in place of "
          "--local-rank");
    } else if (settings_.IsOn("use-env")) {
      NoteIgnored(settings_, "use-env", "only rankrun-launch passes --local-rank", plan_.ignored);
    }
    for (std::string_view name : {"module", "no-python"}) {
      if (settings_.IsOn("run-path") && settings_.IsOn(name)) {
        NoteIgnored(settings_, name, "overridden by " + settings_.OriginOf("run-path"),
                    plan_.ignored);
      }
    }
    for (const NoEffect& no_effect : kNoEffect) {
      NoteIgnored(settings_, no_effect.name, std::string(no_effect.why), plan_.ignored);
    }
    return std::move(plan_);
  }

 private:
  void Add(const std::vector<Note>& notes) {
    plan_.ignored.insert(plan_.ignored.end(), notes.begin(), notes.end());
  }

  // The search reads folders of several drivers, and each start would wait for it.
  bool NeedsAccelerators() const {
    auto count = settings_.Text("nproc-per-node");
    bool is_near_gpus = settings_.Text("bind") || settings_.Text("numa-binding");
    bool gives_gpus = settings_.Text("gpus") || settings_.IsOn("virtual-local-rank");
    return is_near_gpus || gives_gpus || !count || !ParseNumber<int>(*count);
  }

  // Uses the environment of the job, because --env may have changed it.
  Result<void> PlanWorkers() {
    const agent::Accelerators used =
        NeedsAccelerators() ? machine_.accelerators(plan_.spec.environment) : agent::Accelerators();
    agent::Accelerators all = used;
    all.listed.reset();
    auto gpus = ReadGpus(settings_, [&] { return machine_.visible_gpus(all); });
    if (!gpus) return std::move(gpus).error();
    auto count = ReadWorkerCount(
        settings_, {.gpus_typed = *gpus,
                    .accelerators = used,
                    .visible_gpus = [&] { return machine_.visible_gpus(used); },
                    .ask_torch = [&] { return machine_.ask_torch(plan_.spec.environment); },
                    .scheduler_gpus = used.listed ? std::nullopt : machine_.scheduler.gpus,
                    .cpus = machine_.cpus,
                    .cpu_limit = machine_.cpu_limit,
                    .one_by_default = as_torchrun_});
    if (!count) return std::move(count).error();
    plan_.spec.gpus = std::move(*gpus);
    plan_.spec.gpu_variable = agent::VariableOfType(count->torch_type).value_or(used.variable);
    plan_.spec.workers = count->workers;
    plan_.why_workers = std::move(count->why);
    plan_.spec.virtual_local_rank = settings_.IsOn("virtual-local-rank");
    plan_.spec.host_name = machine_.host_name;
    const bool sets_threads = !agent::VariableOf(plan_.spec.environment, "OMP_NUM_THREADS");
    if (sets_threads && machine_.cpu_limit) plan_.spec.cpu_limit = machine_.cpu_limit();
    plan_.spec.role = settings_.Text("role").value_or(plan_.spec.role);
    WarnOfFewCpus();
    return {};
  }

  // By default, mpirun and srun bind a process to one core.
  void WarnOfFewCpus() {
    const std::string& more_cpus = machine_.scheduler.more_cpus;
    int workers = plan_.spec.workers;
    bool few = machine_.cpus < workers && machine_.cpus < machine_.online_cpus;
    if (more_cpus.empty() || !few) return;
    plan_.warnings.push_back(
        std::to_string(workers) + " workers share " + std::to_string(machine_.cpus) + " of the " +
        std::to_string(machine_.online_cpus) + " CPUs of this machine; to use more: " + more_cpus);
  }

  Result<void> PlanNodes() {
    std::string advice = AdviceOf(machine_.scheduler, settings_);
    if (!advice.empty()) plan_.warnings.push_back(std::move(advice));
    auto range = ReadNodeRange(settings_);
    if (!range) return std::move(range).error();
    if (range->max == 1) {
      Add(IgnoredOnOneNode(settings_));
      if (auto planned = PlanFinishTimeout(); !planned) return planned;
      auto rendezvous =
          ReadRendezvous(settings_, as_torchrun_ ? machine_.full_host_name : FullHostName{});
      if (!rendezvous) return std::move(rendezvous).error();
      PlanRendezvous(*rendezvous);
      if (as_torchrun_ && rendezvous->address && !IsLoopback(*rendezvous->address)) {
        plan_.warnings.emplace_back(
            "any program that can connect to the port of the workers' store can change it; "
            "rankrun admits this host only");
      }
      return {};
    }
    auto nodes = ReadNodes(settings_, {.scheduler = machine_.scheduler,
                                       .host_name = machine_.host_name,
                                       .secret = SecretSources()});
    if (!nodes) return std::move(nodes).error();
    plan_.spec.nodes = std::move(nodes->spec);
    std::ranges::move(nodes->warnings, std::back_inserter(plan_.warnings));
    PlanRendezvous(nodes->rendezvous);
    return {};
  }

  // On one node there is no default: torchrun waits for ever, too.
  Result<void> PlanFinishTimeout() {
    plan_.spec.finish_timeout = settings_.values().Seconds("finish-timeout");
    if (!plan_.spec.finish_timeout || *plan_.spec.finish_timeout > std::chrono::milliseconds(0)) {
      return {};
    }
    return settings_.Wrong("finish-timeout",
                           "want more than 0 seconds" + Got(*settings_.Text("finish-timeout")));
  }

  SecretContext SecretSources() const {
    std::vector<std::string> empty;
    for (std::string name : {kSecretVariable, kSecretFileVariable}) {
      if (std::ranges::find(machine_.variables, name + "=") != machine_.variables.end()) {
        empty.push_back(std::move(name));
      }
    }
    return {.environment = machine_.environment,
            .empty_variables = std::move(empty),
            .read_file = machine_.read_secret,
            .read_own = machine_.read_own_secret,
            .make_munge = machine_.make_munge_secret,
            .is_container = machine_.is_container,
            .is_optional = as_torchrun_};
  }

  void PlanRendezvous(const Rendezvous& rendezvous) {
    plan_.spec.store_open = as_torchrun_ || settings_.IsOn("store-open");
    plan_.spec.master_addr_typed = rendezvous.address.has_value();
    plan_.spec.master_addr = rendezvous.address.value_or(plan_.spec.master_addr);
    plan_.spec.master_port = rendezvous.port;
    plan_.spec.master_addr_origin = rendezvous.address_origin;
    plan_.spec.master_port_origin = rendezvous.port_origin;
    if (rendezvous.port_origin == settings_.OriginOf("rdzv-endpoint")) {
      plan_.spec.master_port_text = settings_.Text("rdzv-endpoint").value_or("");
    }
    plan_.spec.run_id = rendezvous.run_id.empty() ? machine_.random_id : rendezvous.run_id;
    if (auto size = settings_.values().Size("store-max-value")) plan_.spec.store_max_value = *size;
    Add(rendezvous.ignored);
  }

  Result<void> PlanBinding() {
    auto ours = ByName(kBindings, settings_.Text("bind"));
    auto theirs = ByName(kNumaBindings, settings_.Text("numa-binding"));
    if (ours && theirs && *ours != *theirs) {
      return Error{ErrorCode::kInvalid, settings_.OriginOf("bind") + " " + *settings_.Text("bind") +
                                            " and " + settings_.OriginOf("numa-binding") + " " +
                                            *settings_.Text("numa-binding") +
                                            " exclude each other; want one of them"};
    }
    plan_.spec.binding = ours ? *ours : theirs.value_or(Binding::kNone);
    return {};
  }

  Result<void> PlanSignals() {
    auto text = settings_.Text("signals-to-handle");
    plan_.spec.heeds_interrupts = as_torchrun_ || text.has_value();
    if (!text) return {};
    auto signals = ParseSignals(*text);
    if (!signals) return settings_.Wrong("signals-to-handle", signals.error().message);
    plan_.spec.end_signals = std::move(*signals);
    return {};
  }

  Result<void> PlanOutput() {
    auto output = ReadOutput(settings_, {.workers = plan_.spec.workers,
                                         .as_torchrun = as_torchrun_,
                                         .environment = machine_.environment,
                                         .several_nodes = plan_.spec.nodes.has_value()});
    if (!output) return std::move(output).error();
    plan_.spec.output = std::move(output->spec);
    Add(output->ignored);
    std::ranges::move(output->warnings, std::back_inserter(plan_.warnings));
    plan_.spec.version = kVersion;
    plan_.spec.lifeline = settings_.values().Count("lifeline");
    plan_.spec.events_file = settings_.Text("events").value_or("");
    plan_.spec.events_console = settings_.Text("event-log-handler") == "console";
    auto read = ReadObservers(settings_, machine_.environment, plan_.spec);
    if (read && plan_.spec.metrics) NameMachine(*plan_.spec.metrics);
    return read;
  }

  // Asks the resolver for the full name only where other hosts may use it.
  void NameMachine(agent::MetricsAddress& metrics) const {
    const std::string& name = machine_.host_name;
    metrics.names = {name, name.substr(0, name.find('.'))};
    const bool needs_no_more = metrics.is_open || !metrics.path.empty() || IsLoopback(metrics.host);
    if (needs_no_more || !machine_.full_host_name) return;
    metrics.names.push_back(machine_.full_host_name());
  }

  // Only NAME_PORT can have the name of a setting.
  void NoteServiceLink(std::string_view entry) {
    size_t equals = std::min(entry.find('='), entry.size());
    std::string name(entry.substr(0, equals));
    std::string value(entry.substr(std::min(equals + 1, entry.size())));
    bool is_ours = name.starts_with(kOurPrefix) || name.starts_with(kPetPrefix);
    if (!is_ours || !name.ends_with("_PORT") || !IsServiceLink(name, value)) return;
    plan_.ignored.push_back({name + " " + value, "Kubernetes set it for a Service"});
  }

  // Returns whether the entry describes rankrun as a process of MPI, and the
  // user does not pass it on by --env.
  bool IsOfOurMpi(std::string_view entry) const {
    std::string_view name = entry.substr(0, entry.find('='));
    if (!IsOfMpi(name) || !IsPreparedForMpi(machine_.environment)) return false;
    return std::ranges::count(settings_.values().Texts("env"), name) == 0;
  }

  Result<void> PlanEnvironment() {
    for (const std::string& entry : machine_.variables) {
      if (!IsAboutSecret(entry) && !IsOfOurMpi(entry)) plan_.spec.environment.push_back(entry);
      NoteServiceLink(entry);
    }
    if (IsPreparedForMpi(machine_.environment)) {
      plan_.ignored.push_back({"OMPI_*, PMIX_*, PMI_*",
                               "workers do not get what describes rankrun as a process of MPI"});
    }
    plan_.spec.mpirun = machine_.mpirun;
    plan_.spec.open_files = machine_.open_files;
    for (const std::string& entry : settings_.values().Texts("env")) {
      size_t equals = entry.find('=');
      std::string name = entry.substr(0, equals);
      if (name.empty()) return settings_.Wrong("env", "want NAME=VALUE or NAME" + Got(entry));
      if (IsAboutSecret(entry))
        return settings_.Wrong("env", name + " cannot be passed to the workers");
      if (equals != entry.npos) {
        plan_.spec.environment.push_back(entry);  // the last entry of a name counts
        continue;
      }
      auto is_it = [&](const std::string& known) { return known.starts_with(name + "="); };
      if (std::ranges::none_of(machine_.variables, is_it)) {
        return settings_.Wrong("env", name + " is not set here; want " + name + "=VALUE");
      }
    }
    return {};
  }

  void PlanSupervision() {
    const ParsedFlags& values = settings_.values();
    agent::JobSpec& spec = plan_.spec;
    spec.max_restarts = values.Count("max-restarts").value_or(spec.max_restarts);
    spec.restart_pause = values.Seconds("restart-pause").value_or(spec.restart_pause);
    spec.shutdown_timeout = values.Seconds("shutdown-timeout").value_or(spec.shutdown_timeout);
    spec.save_timeout = values.Seconds("save-timeout").value_or(spec.save_timeout);
    spec.time_limit = values.Seconds("timeout");
    if (spec.time_limit == std::chrono::milliseconds(0)) spec.time_limit.reset();
    spec.hang_notice = values.Seconds("hang-notice").value_or(spec.hang_notice);
    spec.hang_timeout = values.Seconds("hang-timeout");
    if (spec.hang_timeout == std::chrono::milliseconds(0)) spec.hang_timeout.reset();
    spec.continue_on_failure = settings_.IsOn("continue-on-failure");
  }

  const Settings& settings_;
  const bool as_torchrun_;
  const bool is_launch_;  // by the name rankrun-launch
  const Machine& machine_;
  JobPlan plan_;
};

}  // namespace

Result<JobPlan> MakeJobPlan(const Settings& settings, std::string_view command,
                            const Machine& machine) {
  return Planner(settings, command, machine).Plan();
}

Result<ProgramRequest> MakeProgramRequest(const Settings& settings, std::string_view command,
                                          const std::vector<std::string>& program) {
  if (program.empty() || program[0].empty()) {
    return Error{ErrorCode::kInvalid, "no program given; usage: " + std::string(command) +
                                          " [flags] program [arguments]"};
  }
  ProgramRequest request{.program = program,
                         .no_python = settings.IsOn("no-python"),
                         .module = settings.IsOn("module"),
                         .always_python = HasTorchrunDefaults(command)};
  if (settings.IsOn("run-path")) {  // overrides the other two, as in torchrun
    request.always_python = true;
    request.no_python = request.module = false;
  }
  if (request.module && request.no_python) {
    return Error{ErrorCode::kInvalid, settings.OriginOf("module") + " and " +
                                          settings.OriginOf("no-python") + " exclude each other"};
  }
  if (command == kRankrunLaunch && !settings.IsOn("use-env")) {
    if (request.no_python) {
      return Error{ErrorCode::kInvalid, settings.OriginOf("no-python") + " needs --use-env: " +
                                            "only a Python program gets --local-rank"};
    }
    request.program.insert(request.program.begin() + 1, "--local-rank=${local_rank}");
  }
  return request;
}

}  // namespace rankrun::launcher

#include "launcher/show/explain.h"

#include <algorithm>
#include <iterator>

#include "agent/machine/binding.h"
#include "agent/output/log_directory.h"
#include "agent/worker/program_arguments.h"
#include "agent/worker/worker_environment.h"
#include "base/format.h"
#include "base/net/host_port.h"
#include "base/printable.h"
#include "base/process/cpus.h"
#include "base/trace/trace_writer.h"
#include "launcher/show/explain_nodes.h"
#include "launcher/show/shell_line.h"

namespace rankrun::launcher {
namespace {

using agent::JobSpec;
using Row = std::vector<std::string>;

constexpr const char* kFreePort = "a free one for each attempt";

// Returns the rows with aligned columns.
std::string Table(const std::string& title, const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = title + "\n";
  for (const Row& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      std::string cell = OneLine(row[i]);
      if (i + 1 < row.size()) cell.resize(std::max(cell.size(), widths[i]), ' ');
      line += " " + cell + (i + 1 < row.size() ? " " : "");
    }
    text += line + "\n";
  }
  return text;
}

std::string SettingsText(const FlagTable& table, const CommandLine& line) {
  std::vector<Row> rows;
  for (const Flag& flag : table.flags) {
    auto found = line.settings.all().find(flag.name);
    if (found == line.settings.all().end()) continue;
    rows.push_back({std::string(flag.name), ShownValue(found->second), found->second.origin});
  }
  if (!line.program_origin.empty()) {
    rows.push_back({"program", ShellLine(line.program), line.program_origin});
  }
  if (rows.empty()) return "Settings: all have their defaults\n";
  return Table("Settings that differ from their defaults", rows);
}

std::string IgnoredText(const CommandLine& line, const JobPlan& plan) {
  std::vector<Row> rows;
  for (const Overridden& overridden : line.settings.overridden()) {
    rows.push_back({overridden.setting.origin + " " + ShownValue(overridden.setting),
                    "overridden by " + overridden.by});
  }
  for (const Note& note : plan.ignored) rows.push_back({note.what, note.why});
  return rows.empty() ? "" : "\n" + Table("Without effect", rows);
}

std::string WarningsText(const JobPlan& plan) {
  std::vector<Row> rows;
  for (const std::string& warning : plan.warnings) rows.push_back({warning});
  return rows.empty() ? "" : "\n" + Table("Warnings", rows);
}

// Returns the folder of the files of the first attempt.
std::string LogFolder(const JobSpec& spec) {
  std::string base = spec.output.log_dir.value_or("$TMPDIR/rankrun-XXXXXX");
  return base + "/" + spec.run_id + "_XXXXXXXX/attempt_0";
}

// Returns the common beginning of the paths of a worker's files.
std::string WorkerFilesPrefix(const JobSpec& spec, const std::string& local_rank) {
  using Layout = agent::LogDirectory::Layout;
  bool shared = agent::LogDirectory::LayoutFor(spec.output) == Layout::kFolderPerAttempt;
  return LogFolder(spec) + "/" + local_rank + (shared ? "." : "/");
}

void AddStream(const JobSpec& spec, const std::string& name,
               agent::StreamPlan agent::WorkerOutput::*stream, std::vector<Row>& rows) {
  std::vector<int> shown;
  std::vector<int> filed;
  for (int rank = 0; rank < spec.workers; ++rank) {
    auto index = static_cast<size_t>(rank);
    bool planned = index < spec.output.workers.size();
    agent::StreamPlan plan = planned ? spec.output.workers[index].*stream : agent::StreamPlan{};
    if (plan.to_console) shown.push_back(rank);
    if (plan.to_file) filed.push_back(rank);
  }
  std::string text;
  if (!shown.empty()) text = "console for local ranks " + FormatCpus(shown);
  if (!filed.empty()) {
    text += (text.empty() ? "" : "; ") + name + ".log for local ranks " + FormatCpus(filed);
  }
  rows.push_back({name, text.empty() ? "nowhere" : text});
}

std::string MetricsText(const agent::MetricsAddress& address) {
  if (!address.path.empty()) return "unix:" + address.path;
  return "http://" + HostPortText(address.host, address.port) + "/metrics";
}

void AddOutput(const JobSpec& spec, std::vector<Row>& rows) {
  AddStream(spec, "stdout", &agent::WorkerOutput::standard_output, rows);
  AddStream(spec, "stderr", &agent::WorkerOutput::standard_error, rows);
  if (const auto& ranks = spec.output.shown_ranks) {
    rows.push_back({"shown", "only ranks " + FormatCpus({ranks->begin(), ranks->end()})});
  }
  std::string prefix = spec.output.prefix.empty() ? "none" : "\"" + spec.output.prefix + "\"";
  if (spec.output.prefix_teed_only) prefix += ", only for lines that also go to a file";
  rows.push_back({"prefix", prefix});
  rows.push_back(
      {"files", spec.output.no_files ? "none" : WorkerFilesPrefix(spec, "<local rank>") + "*"});
  if (!spec.events_file.empty()) rows.push_back({"events", spec.events_file});
  if (spec.metrics) rows.push_back({"metrics", MetricsText(*spec.metrics)});
  if (!spec.report_folder.empty()) rows.push_back({"kept reports", spec.report_folder});
  if (!spec.output.trace_dir.empty()) {
    const std::string folder = TraceFolder(agent::Absolute(spec.output.trace_dir), spec.run_id);
    rows.push_back({"traces", folder + "/attempt_0/rank_<rank>.trace"});
  }
}

std::string BindingText(agent::Binding binding) {
  using agent::Binding;
  switch (binding) {
    case Binding::kNone:
      return "none: every worker may use all of our CPUs";
    case Binding::kCore:
      return "whole cores of its own for each worker";
    case Binding::kNuma:
      return "a NUMA node for each worker";
    case Binding::kSocket:
      return "a socket for each worker";
    case Binding::kExclusive:
      return "a share of the cores of its NUMA node for each worker";
    case Binding::kCoreComplex:
      return "cores under one cache for each worker";
  }
  __builtin_unreachable();
}

std::string PlanText(const JobPlan& plan) {
  const JobSpec& spec = plan.spec;
  std::string workers = std::to_string(spec.workers);
  if (!plan.why_workers.empty()) workers += ": " + plan.why_workers;
  std::string last = std::to_string(spec.workers - 1);
  std::string local_ranks = last == "0" ? "0" : "0 to " + last;
  std::vector<Row> rows = {{"workers", workers}};
  if (spec.nodes) {
    std::ranges::move(NodesRows(*spec.nodes), std::back_inserter(rows));
    rows.push_back({"local ranks", local_ranks + "; ranks are known after the rendezvous"});
  } else {
    rows.push_back({"ranks", local_ranks + ", on this node; local ranks are the same"});
  }
  auto place = spec.nodes ? std::nullopt : std::optional(agent::PlaceAlone(spec, 0, 0));
  auto first = agent::ArgumentsFor(spec, 0, place);
  bool differ = spec.workers > 1 && first != agent::ArgumentsFor(spec, 1, place);
  rows.push_back({"program", ShellLine(first) + (differ ? " (of local rank 0)" : "")});
  rows.push_back({"executable", spec.program.file});
  if (spec.preload) rows.push_back({"imported once", spec.preload->modules});
  bool moves = spec.nodes && IsOfRound(*spec.nodes, "MASTER_ADDR");
  rows.push_back({"MASTER_ADDR", moves ? "the address of the node with rank 0" : spec.master_addr});
  rows.push_back({"MASTER_PORT", spec.master_port ? std::to_string(*spec.master_port) : kFreePort});
  rows.push_back({"binding", BindingText(spec.binding)});
  AddOutput(spec, rows);
  rows.push_back({"restarts", "at most " + std::to_string(spec.max_restarts)});
  std::string signals;
  for (int number : spec.end_signals) signals += (signals.empty() ? "" : ", ") + SignalName(number);
  rows.push_back(
      {"end", "on " + signals + "; SIGKILL after " + FormatSeconds(spec.shutdown_timeout)});
  std::string text = "\n" + Table("Plan", rows);
  if (plan.share.cpus.empty()) return text;
  return text + "\nBinding\n" +
         agent::BindingTable(plan.share.topology, plan.share.cpus, plan.share.gpus);
}

std::string EnvironmentText(const JobPlan& plan, const Machine& machine) {
  const JobSpec& spec = plan.spec;
  const std::string& trace_dir = spec.output.trace_dir;
  const agent::WorkerEnvironment of_workers(
      spec, {.node = agent::PlaceAlone(spec, 0, spec.master_port.value_or(0)),
             .trace_dir = trace_dir.empty() ? "" : agent::Absolute(trace_dir),
             .torch_dumps =
                 spec.output.no_files ? "" : LogFolder(spec) + agent::LogDirectory::kTorchDumps});
  std::vector<std::string> environment = of_workers.Of(
      {.local_rank = 0,
       .threads = plan.share.threads[0],
       .error_file = spec.output.no_files ? "" : WorkerFilesPrefix(spec, "0") + "error.json",
       .status_path = "/proc/<agent>/fd/<number>"});
  std::ranges::sort(environment);
  std::vector<Row> rows;
  for (const std::string& entry : environment) {
    if (std::ranges::find(machine.variables, entry) != machine.variables.end()) continue;
    std::string name = entry.substr(0, entry.find('='));
    if (spec.nodes && IsOfRound(*spec.nodes, name)) {
      rows.push_back({name + "=<known after the rendezvous>"});
    } else {
      bool free_port = entry == "MASTER_PORT=0";
      rows.push_back({free_port ? std::string("MASTER_PORT=<") + kFreePort + ">" : entry});
    }
  }
  std::string whose = spec.nodes ? "local rank 0" : "rank 0";
  return "\n" + Table("Environment of " + whose + ", as far as it differs from ours", rows);
}

}  // namespace

std::string ExplainText(const FlagTable& table, const CommandLine& line, const JobPlan& plan,
                        const Machine& machine) {
  return SettingsText(table, line) + IgnoredText(line, plan) + WarningsText(plan) + PlanText(plan) +
         EnvironmentText(plan, machine);
}

}  // namespace rankrun::launcher

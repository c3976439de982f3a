#include "launcher/show/shell_line.h"

#include <algorithm>

#include "agent/worker/program_arguments.h"
#include "agent/worker/worker_environment.h"
#include "base/process/cpus.h"

namespace rankrun::launcher {
namespace {

constexpr uint16_t kTorchrunPort = 29500;
constexpr std::string_view kAgentStore = "TORCHELASTIC_USE_AGENT_STORE=";
constexpr std::string_view kErrorFile = "TORCHELASTIC_ERROR_FILE=";

bool IsPlain(char c) {
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter || (c >= '0' && c <= '9') ||
         std::string_view("_@%+=:,./-").find(c) != std::string_view::npos;
}

// Returns an assignment: "NAME='a value'".
std::string QuotedEntry(const std::string& entry) {
  size_t equals = entry.find('=');
  std::string value = entry.substr(equals + 1);
  return ShellQuoted(entry.substr(0, equals)) + "=" + (value.empty() ? "" : ShellQuoted(value));
}

// Returns the place of this node in a job of all MAX nodes with equal numbers
// of workers.
agent::NodePlace PlannedPlace(const agent::JobSpec& spec) {
  agent::NodePlace place = agent::PlaceAlone(spec, 0, spec.master_port.value_or(kTorchrunPort));
  if (!spec.nodes) return place;
  const agent::NodesSpec& nodes = *spec.nodes;
  place.node_rank = nodes.node_rank.value_or(nodes.node_index.value_or(0));
  place.node_count = nodes.max;
  place.first_rank = place.node_rank * spec.workers;
  place.world_size = nodes.max * spec.workers;
  if (!nodes.shares_port) place.master_addr = nodes.endpoints[0].host;
  return place;
}

std::string WorkerLine(const JobPlan& plan, const Machine& machine, int local_rank) {
  const agent::JobSpec& spec = plan.spec;
  const agent::NodePlace place = PlannedPlace(spec);
  const agent::WorkerEnvironment of_workers(spec, {.node = place});
  std::vector<std::string> environment =
      of_workers.Of({.local_rank = local_rank,
                     .threads = plan.share.threads[static_cast<size_t>(local_rank)],
                     .error_file = "",
                     .status_path = ""});
  std::ranges::sort(environment);
  std::string line;
  for (const std::string& entry : environment) {
    if (entry.starts_with(kAgentStore)) {
      line += " " + std::string(kAgentStore) + "False";
    } else if (!entry.starts_with(kErrorFile) &&
               std::ranges::find(machine.variables, entry) == machine.variables.end()) {
      line += " " + QuotedEntry(entry);
    }
  }
  std::vector<std::string> arguments = agent::ArgumentsFor(spec, local_rank, place);
  arguments[0] = spec.program.file;
  Cpus cpus = agent::CpusOf(plan.share, local_rank);
  if (!cpus.empty()) line += " taskset -c " + FormatCpus(cpus);
  return line + " " + ShellLine(arguments) + "\n";
}

}  // namespace

std::string ShellQuoted(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, IsPlain)) return std::string(word);
  std::string quoted = "'";
  for (char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string ShellLine(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuoted(word);
  return line;
}

std::string DryRunText(const JobPlan& plan, const Machine& machine, const std::string& folder) {
  std::string env = folder.empty() ? "env" : "env -C " + ShellQuoted(folder);
  std::string text;
  if (plan.spec.nodes) {
    text = "# assumes that all " + std::to_string(plan.spec.nodes->max) + " nodes join, with " +
           std::to_string(plan.spec.workers) +
           (plan.spec.workers == 1 ? " worker each\n" : " workers each\n");
  }
  for (int rank = 0; rank < plan.spec.workers; ++rank)
    text += env + WorkerLine(plan, machine, rank);
  return text;
}

}  // namespace rankrun::launcher

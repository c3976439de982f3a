// Variables of SLURM: a line of the input for each.

#include <array>
#include <map>

#include "launcher/scheduler/slurm.h"
#include "launcher/scheduler/slurm_grammar.h"
#include "tests/fuzz/check_input.h"

namespace rankrun::test {
namespace {

constexpr std::array kNames = {"SLURM_JOB_ID",
                               "SLURM_STEP_ID",
                               "SLURM_PROCID",
                               "SLURM_LOCALID",
                               "SLURM_NODEID",
                               "SLURM_NNODES",
                               "SLURM_JOB_NUM_NODES",
                               "SLURM_STEP_NUM_NODES",
                               "SLURM_NTASKS",
                               "SLURM_STEP_NUM_TASKS",
                               "SLURM_STEP_TASKS_PER_NODE",
                               "SLURM_TASKS_PER_NODE",
                               "SLURM_JOB_NODELIST",
                               "SLURM_STEP_NODELIST",
                               "SLURM_NODELIST",
                               "SLURMD_NODENAME",
                               "SLURM_GPUS_ON_NODE",
                               "SLURM_GPUS_PER_NODE",
                               "SLURM_GPUS_PER_TASK",
                               "SLURM_RESTART_COUNT"};

}  // namespace

std::string CheckInput(std::string_view input) {
  std::map<std::string, std::string> variables;
  std::string_view rest = input;
  for (const char* name : kNames) {
    size_t end = std::min(rest.find('\n'), rest.size());
    if (end > 0) variables[name] = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  (void)launcher::ReadSlurm([&](const std::string& name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
  constexpr size_t kMaxNodes = 100'000;
  auto nodes = launcher::ParseNodeList(input);
  if (nodes && nodes->size() > kMaxNodes) return "a list of nodes is too long";
  (void)launcher::ParseCounts(input);
  (void)launcher::ParseGpuCount(input);
  return "";
}

}  // namespace rankrun::test

#include "cli/stacks_command.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <string>
#include <vector>

#include "agent/stacks/stack_taker.h"
#include "agent/stacks/stack_text.h"
#include "agent/stacks/stacks_json.h"
#include "base/process/spawner.h"
#include "base/uv/uv_loop.h"
#include "cli/output.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;

constexpr std::chrono::seconds kBudget{5};
constexpr size_t kMaxPids = 64;

constexpr std::array kFlags{
    Flag{.name = "json", .help = "Print one JSON object for each process, each on one line."},
    kHelpFlag};

std::vector<agent::ProcessStacks> TakeStacks(const std::vector<pid_t>& pids) {
  Loop loop;
  Spawner spawner(loop);
  agent::StackTaker taker(loop, spawner);
  std::vector<agent::ProcessStacks> stacks;
  taker.Take(pids, kBudget, [&](std::vector<agent::ProcessStacks> all) {
    stacks = std::move(all);
    loop.Stop();
  });
  loop.Run();
  return stacks;
}

int RunStacks(const CommandLine& line) {
  std::vector<pid_t> pids;
  for (const std::string& text : line.operands) {
    pid_t pid = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
    const bool is_pid = error == std::errc() && end == text.data() + text.size() && pid > 0;
    if (!is_pid) return Fail("\"" + text + "\" is no pid; want a positive number", kExitUsage);
    pids.push_back(pid);
  }
  const std::vector<agent::ProcessStacks> all = TakeStacks(pids);
  std::string text;
  for (const agent::ProcessStacks& stacks : all) {
    text += line.flags.Has("json") ? FormatStacks(stacks) : FormatStacksText(stacks);
  }
  const bool are_complete = std::ranges::all_of(
      all, [](const agent::ProcessStacks& stacks) { return stacks.note.empty(); });
  const int exit_code = Print(text);
  return exit_code == kExitDone && !are_complete ? kExitNo : exit_code;
}

constexpr Command kCommand = {
    .title = "rankctl stacks",
    .name = "stacks",
    .operands = "PID...",
    .least_operands = 1,
    .most_operands = kMaxPids,
    .help = "Print the stacks of processes on this host.",
    .details =
        "For each thread the command prints its state, its system call with the file, and its "
        "functions, innermost first. For programs of CPython 3.8 to 3.13, the functions of Python "
        "with their lines stand in the place of those of the interpreter. A process is stopped "
        "for some milliseconds only. It must be one of the same user; where the kernel restricts "
        "tracing, the command says how to allow it, and prints what /proc shows. The exit code is "
        "1 if a stack is incomplete.",
    .flags = kFlags,
    .run = RunStacks};

}  // namespace

const Command& StacksCommand() { return kCommand; }

}  // namespace rankrun::cli

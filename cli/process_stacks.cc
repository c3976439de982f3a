#include "cli/process_stacks.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "agent/stacks/stack_taker.h"
#include "agent/stacks/stack_text.h"
#include "agent/stacks/stacks_json.h"
#include "base/process/spawner.h"
#include "base/uv/uv_loop.h"
#include "cli/output.h"

namespace rankrun::cli {
namespace {

constexpr std::chrono::seconds kBudget{5};

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

}  // namespace

int PrintProcessStacks(const std::vector<pid_t>& pids, bool as_json) {
  const std::vector<agent::ProcessStacks> all = TakeStacks(pids);
  std::string text;
  for (const agent::ProcessStacks& stacks : all) {
    text += as_json ? FormatStacks(stacks) : FormatStacksText(stacks);
  }
  const bool are_complete = std::ranges::all_of(
      all, [](const agent::ProcessStacks& stacks) { return stacks.note.empty(); });
  const int exit_code = Print(text);
  return exit_code == kExitDone && !are_complete ? kExitNo : exit_code;
}

}  // namespace rankrun::cli

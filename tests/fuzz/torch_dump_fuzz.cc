// The dump of PyTorch's flight recorder, which any program may have written.

#include <chrono>

#include "agent/report/pickle.h"
#include "agent/report/torch_calls.h"
#include "tests/fuzz/check_input.h"

namespace rankrun::test {

// The same in each run, so that a finding can be repeated.
constexpr std::chrono::system_clock::time_point kNow{std::chrono::seconds(1'800'000'000)};

std::string CheckInput(std::string_view input) {
  const agent::TorchDump dump = agent::ReadTorchDump(input, kNow);
  if (!dump.calls.empty() && !agent::Pickle::Read(input)) return "calls of a pickle with an error";
  if (dump.last_operations.size() > 3) return "more than three operations";
  for (const agent::LastOperation& operation : dump.last_operations) {
    if (operation.ago < Duration::zero()) return "an operation of the future";
  }
  for (const agent::GroupCall& call : dump.calls) {
    for (char c : call.what + call.group) {
      if (c < 0x20 || c > 0x7e) return "a character that a terminal must not get";
    }
  }
  return "";
}

}  // namespace rankrun::test

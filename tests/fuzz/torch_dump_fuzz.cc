// The dump of PyTorch's flight recorder, which any program may have written.

#include "agent/report/pickle.h"
#include "agent/report/torch_calls.h"
#include "tests/fuzz/check_input.h"

namespace rankrun::test {

std::string CheckInput(std::string_view input) {
  const agent::TorchDump dump = agent::ReadTorchDump(input, {});
  if (!dump.calls.empty() && !agent::Pickle::Read(input)) return "calls of a pickle with an error";
  if (dump.last_operations.size() > 3) return "more than three operations";
  for (const agent::GroupCall& call : dump.calls) {
    for (char c : call.what + call.group) {
      if (c < 0x20 || c > 0x7e) return "a character that a terminal must not get";
    }
  }
  return "";
}

}  // namespace rankrun::test

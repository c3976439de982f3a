// Messages of the control plane from a member that knows the secret, and the
// record that an agent leaves for its next incarnation.

#include "agent/nodes/control_codec.h"
#include "agent/nodes/job_report.h"
#include "tests/fuzz/check_input.h"

namespace rankrun::test {
namespace {

using namespace agent;

// Returns whether a decoded message survives another encoding and decoding.
template <typename Decode>
bool IsStable(std::string_view input, const Decode& decode) {
  auto first = decode(input);
  if (!first) return true;
  std::string bytes = Encode(*first);
  auto second = decode(bytes);
  return second && Encode(*second) == bytes;
}

}  // namespace

std::string CheckInput(std::string_view input) {
  if (!IsStable(input, DecodeMemberMessage)) return "a member's message changes";
  if (!IsStable(input, DecodeCoordinatorMessage)) return "a coordinator's message changes";
  if (!IsStable(input, DecodeCoordinatorRecord)) return "a coordinator's record changes";
  if (auto record = DecodeReport(input)) {
    std::string part = EncodeReport(*record, kMaxPartBytes);
    if (part.size() > kMaxPartBytes) return "a report is too large";
    if (!DecodeReport(part)) return "a report cannot be read again";
  }
  return "";
}

}  // namespace rankrun::test

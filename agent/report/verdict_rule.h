#pragma once

#include <cstdint>

namespace rankrun::agent {

// Rules by which the first cause of a failure is chosen (docs/supervision.md). The simulator in
// tests/sim must notice when one is missing. Only the simulator is built with that switch.
enum class VerdictRule : uint8_t {
  kNone,
  // The rows of the table.
  kHung,
  kFailed,
  kTheOnlyOneWithAnotherError,  // rows 0a and 11
  kTheOnlyOneThatLogged,        // rows 0b and 10b
  kNamed,
  kExitedAfterSignal,
  kFailedAfterWarning,
  kTheOnlyOneThatLostNobody,
  kKilledInException,
  kInputEnded,
  kTimedOut,
  kTheOnlyOneThatLeftEarly,
  kRaisedAfterSignal,
  kLostPeer,
  // The order within a row.
  kLowestRank,  // row 0
  kNamedByMost,
  kFirstEnded,
  // The conditions of a row.
  kSilentFailureIsStronger,     // rows 0a and 11
  kNamedOnesLostNobody,         // row 2
  kSeveralExitInTheirHandlers,  // row 3
  kTwoLostTheOnlyOne,           // row 5
  kSilentOneMayBeInnocent,      // row 5, while the input of others ended
  kSeveralLeftEarly,            // row 9
  kAllRaiseInTheirHandlers,     // row 10
};

#ifdef RANKRUN_MUTATIONS
inline VerdictRule g_missing_rule = VerdictRule::kNone;
inline bool IsMissing(VerdictRule rule) { return g_missing_rule == rule; }
#else
constexpr bool IsMissing(VerdictRule) { return false; }
#endif

}  // namespace rankrun::agent

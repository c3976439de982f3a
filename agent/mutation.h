#pragma once

namespace rankrun::agent {

// Deliberate bugs, which the simulator of tests/sim must find. Programs are
// built without them.
enum class Mutation {
  kNone,
  kGoBeforeAllPrepared,
  kToldBeforeReaped,  // stopped, although the workers still are
  kLinkLossIsProof,   // of the end of everything at the node
  kSuccessInOnePhase,
  kWorldBeginsAnew,     // members of an unknown coordinator's round are not looked at
  kIncarnationIgnored,  // a restarted agent is taken for its predecessor
  kBudgetOffByOne,
  kLeaveIsFailure,
  kLeaseIgnored,
  kStaleWordCounts,  // that a node was prepared for an earlier round
  kRecordKeptLate,   // after it has been acted upon
  kKillBoundIgnored,
  kStuckIsWaitedFor,  // no round without it
};

#ifdef RANKRUN_MUTATIONS
inline Mutation g_mutation = Mutation::kNone;
inline bool IsMutated(Mutation mutation) { return g_mutation == mutation; }
#else
constexpr bool IsMutated(Mutation) { return false; }
#endif

}  // namespace rankrun::agent

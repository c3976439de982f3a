#pragma once

namespace rankrun::agent {

// Deliberate bugs that the simulator in tests/sim must find. Only the simulator
// is built with them.
enum class Mutation {
  kNone,
  kGoBeforeAllPrepared,
  kToldBeforeReaped,  // sends Stopped while workers still run
  kLinkLossIsProof,   // takes a broken link for the end of the node
  kSuccessInOnePhase,
  kWorldBeginsAnew,     // ignores rounds of a coordinator that it never knew
  kIncarnationIgnored,  // takes a restarted agent for its predecessor
  kBudgetOffByOne,
  kLeaveIsFailure,
  kLeaseIgnored,
  kStaleWordCounts,  // accepts a Prepared of an earlier round
  kRecordKeptLate,   // persists the record after acting on it
  kKillBoundIgnored,
  kStuckIsWaitedFor,     // forms no round while a node is stuck
  kRefusalNeedsNoTrial,  // takes a firewall for the end of a node
  kReplacedStays,        // chooses a replaced node although there is a spare
};

#ifdef RANKRUN_MUTATIONS
inline Mutation g_mutation = Mutation::kNone;
inline bool IsMutated(Mutation mutation) { return g_mutation == mutation; }
#else
constexpr bool IsMutated(Mutation) { return false; }
#endif

}  // namespace rankrun::agent

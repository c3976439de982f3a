#pragma once

#include "agent/report/attempt_record.h"
#include "tests/sim/dice.h"

namespace rankrun::sim {

// How a worker ends. "Late" ends come after a signal of its agent.
enum class End {
  kHangs,
  kCannotStart,
  kExits,           // with a code and without a word
  kRaises,          // an exception that nothing catches
  kDiesOfSignal,    // from outside
  kExitsWarned,     // as kExits, but its log mentions a connection
  kExitsLate,       // with a code of its own
  kCutInException,  // the signal ends it while it ends with an exception
  kRaisesLate,
  kLeavesEarly,  // succeeds
  kSucceedsLate,
  kStopped,  // by the signal
  // Before or after a signal.
  kInputEnds,
  kTimesOut,
  kLosesPeer,
  kLosesPeerInItsWords,  // that of a program of the user, the same on all ranks
  kLogsAndLosesPeer,     // with an error in its log shortly before
  kLogsAndRaises,        // likewise, and then the error of kLosesPeerInItsWords
  kNamesCulprit,         // has lost it
  kNamesVictim,          // has lost one that has lost another
  kNamesWaiter,          // has lost one that waited in vain
  kComparesCalls,        // its call differs from that of the rank that it names
};

// One worker of a scene.
struct Actor {
  int rank = 0;
  End end = End::kStopped;
  bool is_late = false;
  int named = -1;  // rank
};

bool MayBeLate(End end);
bool MustBeLate(End end);
bool IsFailure(End end);

// Makes the evidence that the agent of the worker has. The dice choose among programs: their
// languages and libraries, the code or the signal, and the log before the error.
agent::WorkerRecord MakeEvidence(const Actor& actor, Dice& dice);

}  // namespace rankrun::sim

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/health/hang_watch.h"
#include "agent/health/worker_sample.h"
#include "agent/stacks/process_stacks.h"

// Suspects of a hang whose workers show nothing but their stacks, as those of PyTorch without
// librankrun. Pure.
namespace rankrun::agent {

// Returns the function of torch.distributed, or of a library below it, in which the main thread
// is: "all_reduce". Empty: it is in none.
std::string CollectiveOf(const ProcessStacks& stacks);

// An attempt of a main thread to reach the store of its job.
enum class Dial : uint8_t { kNone, kRefused, kUnanswered };

// The part of a rank's stacks that is compared, short enough for a message.
struct StackDigest {
  bool is_known = false;        // the stack of its main thread could be read
  bool is_exiting = false;      // its main thread has done its work and ends the process
  std::string collective = {};  // see CollectiveOf
  std::string place = {};       // innermost frames: "wait (connection.py) <- main (train.py:7)"
  // Not in messages between nodes:
  std::string call = {};  // the function of torch.distributed that the program has called
  Dial dial = Dial::kNone;
  std::string address = {};  // that it dials: "127.0.0.1:12355", "a store, in main (train.py:4)"
  bool operator==(const StackDigest&) const = default;
};
StackDigest DigestOf(const ProcessStacks& stacks);

struct RankDigest {
  int global_rank = 0;
  StackDigest digest = {};
  bool operator==(const RankDigest&) const = default;
};

// Returns the digests of the workers that run. One whose stacks are not among `stacks` is unknown.
std::vector<RankDigest> DigestsOf(const std::vector<WorkerSample>& workers,
                                  const std::map<pid_t, ProcessStacks>& stacks);

struct StackSuspect {
  int global_rank = 0;
  std::string what = {};  // "in barrier, while all others are in all_reduce"
};

// Returns the only rank whose main thread is in no collective while those of all others are. If
// all are in one, returns the only rank that is in another than all others. Returns nothing if
// there is no such rank, or if the stacks of one could not be read.
std::optional<StackSuspect> SuspectByStacks(const std::vector<RankDigest>& workers);

// Adds the suspect, if there is one, to a verdict that needs stacks. If the verdict blames ranks
// that have ended, and all others are exiting outside a collective, blames those instead.
HangVerdict WithSuspect(HangVerdict verdict, const std::vector<RankDigest>& workers);

// Names the causes of a verdict of JudgeUnfinished that needs stacks: the ended ranks if all others
// are in collectives, or a running rank that the others wait for or that is exiting.
HangVerdict WithAwaitedEnd(HangVerdict verdict, const std::set<int>& ended,
                           const std::vector<RankDigest>& workers);

}  // namespace rankrun::agent

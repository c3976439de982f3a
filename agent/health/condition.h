#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/health/worker_sample.h"

// Conditions of a worker for which others wait. Pure.
namespace rankrun::agent {

enum class Condition : uint8_t {
  kNotStarted,
  kEnded,
  kHeld,      // at a breakpoint or a prompt, or by a debugger
  kSaving,    // a checkpoint
  kStopped,   // by a signal
  kInKernel,  // in uninterruptible sleep
  kMoves,     // its operations or its files make progress: slow, but alive
  kBusy,      // uses the processor
  kSleeps,
  kInFile,  // reads, writes or opens a file or a FIFO
  kWaits,   // for a lock, a connection or a child process
  kUnknown,
};

// Work of a worker since the look before.
struct RecentWork {
  double cpu_share = 0;        // of one core
  bool moves = false;          // the counters of its page or of its files have changed
  bool was_in_kernel = false;  // in uninterruptible sleep at the look before
};

Condition ConditionOf(const WorkerSample& sample, const RecentWork& work);

// Whether such a worker does not continue, whatever others do and its page shows.
bool IsHalted(Condition condition);
// Whether a worker in this condition may be ended as the cause of a hang.
bool MayHang(Condition condition);

// Returns "is stopped (SIGSTOP)", or "are stopped (SIGSTOP)" for `count` workers in that condition.
std::string ConditionInWords(const WorkerSample& sample, Condition condition, size_t count = 1);

}  // namespace rankrun::agent

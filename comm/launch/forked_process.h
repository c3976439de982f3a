#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/spawn.h>

#include "base/fd.h"
#include "base/process/spawn.h"
#include "base/result.h"

namespace rankrun::comm {

// Facts about this process that decide whether a fork can go on working.
struct ForkFacts {
  int threads = 1;
  bool has_world = false;
  bool uses_gpu = false;
};

// Waits for an instant, because a joined thread may not have left yet.
ForkFacts FactsOfThisProcess();

// Error: kInvalid, a fork of such a process does not work. Pure.
Result<void> CheckFork(const ForkFacts& facts);

// How the function of a process has ended, written by the process.
struct SpawnRecord {
  bool returned = false;
  bool lost_peer = false;      // threw a DistNetworkError, which another process may have caused
  std::string exception = {};  // that it threw
};

std::string EncodeRecord(const SpawnRecord& record);
// Returns an empty record for an empty text: the process ended within its function.
SpawnRecord DecodeRecord(const std::string& text);

// Returns the failure of a process, or nothing if it succeeded. `exit` is missing
// if other code of this program has reaped the process. Pure.
std::optional<SpawnFailure> FailureOf(int rank, pid_t pid, const SpawnRecord& record,
                                      const std::optional<ProcessExit>& exit);

// Returns "rank 1 (pid 77) was killed by SIGKILL". Pure.
std::string InWords(const SpawnFailure& failure);

// A process that Spawn has started. Thread: one at a time.
class ForkedProcess {
 public:
  // Forks. The child runs `function`, after it has dropped `others`, the
  // descriptors of processes that were started before.
  static Result<ForkedProcess> Start(const std::function<void(int)>& function, int rank,
                                     std::vector<ForkedProcess>& others);

  pid_t pid() const { return pid_; }
  const ProcessHandle& handle() const { return handle_; }
  bool ended() const { return ended_; }
  bool lost_peer() const { return lost_peer_; }
  const std::optional<SpawnFailure>& failure() const { return failure_; }

  void Signal(int number) const;
  void Reap();  // once, when the process has ended

 private:
  ForkedProcess() = default;

  int rank_ = 0;
  pid_t pid_ = 0;
  ProcessHandle handle_;
  Fd record_;  // memory file, which never blocks its writer
  bool ended_ = false;
  bool lost_peer_ = false;
  std::optional<SpawnFailure> failure_;
};

}  // namespace rankrun::comm

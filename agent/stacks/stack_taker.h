#pragma once

#include <sys/types.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "agent/stacks/process_stacks.h"
#include "base/clock.h"
#include "base/process/spawner.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Takes the stacks of processes by the program rankrun-stacks, which is killed if it does not
// end in time.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class StackTaker {
 public:
  using Done = std::function<void(std::vector<ProcessStacks>)>;

  // `spawner` outlives this object. The caller reaps the children of this process.
  StackTaker(Loop& loop, Spawner& spawner) : loop_(loop), spawner_(spawner) {}
  StackTaker(const StackTaker&) = delete;
  StackTaker& operator=(const StackTaker&) = delete;
  ~StackTaker();

  // Calls `done` once, after this function has returned and `budget` and 0.3 s later at the
  // latest, with one entry for each pid. The `note` of an entry names missing parts and the reason.
  void Take(const std::vector<pid_t>& pids, Duration budget, Done done);

  // Kills the programs that still run, and calls `done` at once with what they have found.
  void Cancel();

 private:
  class Run;

  Loop& loop_;
  Spawner& spawner_;
  std::list<std::shared_ptr<Run>> runs_;  // shared with the spawner's callback
};

}  // namespace rankrun::agent

#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/health/awaited_file.h"
#include "agent/health/stack_suspect.h"
#include "agent/health/worker_sample.h"
#include "agent/stacks/stack_taker.h"
#include "base/clock.h"

namespace rankrun {
class Loop;
}  // namespace rankrun

namespace rankrun::agent {

class JobOutput;

// Shows what workers without librankrun wait for, once their quiet has lasted for the time of a
// notice: from their stacks and connections.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class QuietNotice {
 public:
  // `spawner` and `output` outlive this object.
  QuietNotice(Loop& loop, Spawner& spawner, JobOutput& output);
  QuietNotice(const QuietNotice&) = delete;
  QuietNotice& operator=(const QuietNotice&) = delete;
  ~QuietNotice();

  // Reads the stacks of these workers, 16 at most, and shows what they wait for. `sees_all`: they
  // are all workers of the job; of some, only dials show something.
  void Show(std::vector<WorkerSample> workers, Duration quiet, bool sees_all);

  // Returns what a notice has shown of a worker that is still quiet: "in all_reduce".
  struct Doing {
    std::string what;
    Duration lasted;
  };
  std::optional<Doing> DoingOf(const WorkerSample& worker, TimePoint now) const;

  // Drops a notice under way, because the attempt is over.
  void Cancel();

 private:
  struct Evidence {
    std::vector<WorkerSample> workers;
    Duration quiet{};
    bool sees_all = false;
    std::vector<RankDigest> digests{};
  };
  struct Known {
    std::string doing{};
    TimePoint since{};    // it is quiet
    Duration cpu_time{};  // used when the stacks were read
    TimePoint read{};
  };
  void ReadFacts(const std::shared_ptr<Evidence>& evidence);
  void Finish(const Evidence& evidence);

  Loop& loop_;
  JobOutput& output_;
  StackTaker taker_;
  std::map<pid_t, Known> known_;
  bool is_busy_ = false;
  int number_ = 0;                      // of the notice under way
  std::shared_ptr<QuietNotice*> self_;  // null in the pool once this object is gone
  // Shared with the pool.
  std::shared_ptr<AwaitedFiles> files_ = std::make_shared<AwaitedFiles>();
};

}  // namespace rankrun::agent

#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "agent/output/log_directory.h"
#include "agent/report/attempt_record.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Completes the records of failed attempts with the workers' error files, their
// last operations, and reasons for which the kernel may have killed them. Saves
// the tail of each standard error that has no log file, and the operations of
// each worker. Works in one thread of the pool, because files may be slow or
// hang, and reads the files of the cause first.
// Thread: loop.
class Evidence {
 public:
  // `root` replaces / in the paths of the kernel's files, for tests.
  explicit Evidence(Loop& loop, std::string root = "") : loop_(loop), root_(std::move(root)) {}

  // Calls `done` once, on the loop's thread, after this function has returned.
  // After one second it passes the evidence found by then. It passes the record
  // unchanged if the files of an earlier record still hang. `directory` is null
  // if nothing is on disk.
  void Complete(const LogDirectory* directory, AttemptRecord record,
                std::function<void(AttemptRecord)> done);

 private:
  Loop& loop_;
  std::string root_;
  std::weak_ptr<void> under_way_;  // expired: the pool has no job
};

}  // namespace rankrun::agent

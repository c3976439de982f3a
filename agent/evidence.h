#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "agent/attempt_record.h"
#include "agent/log_directory.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Completes the records of failed attempts with what the workers left on disk
// (their error files) and why the kernel may have killed them, and saves the
// ends of standard errors that have no log file where that would be. Files may
// be slow or hang: the work is done in the pool, by one thread of it at most, the
// cause's files first.
// Thread: loop.
class Evidence {
 public:
  // `root` is where the kernel's own files are.
  explicit Evidence(Loop& loop, std::string root = "") : loop_(loop), root_(std::move(root)) {}

  // After one second `done` gets what is known by then, and at once what is
  // known without files if those of an earlier record still hang. `done` is
  // called once, on the loop's thread, never from here. `directory` may be
  // null: nothing is on disk.
  void Complete(const LogDirectory* directory, AttemptRecord record,
                std::function<void(AttemptRecord)> done);

 private:
  Loop& loop_;
  std::string root_;
  std::weak_ptr<void> under_way_;  // expired: nothing is with the pool
};

}  // namespace rankrun::agent

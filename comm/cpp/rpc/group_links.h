#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include <rankrun/context.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mutex.h"
#include "base/result.h"
#include "comm/cpp/rpc/group_pipe.h"

namespace rankrun::rpc {

// Connections between the ranks of a context, by messages of its backend. Each pair of ranks
// has a process group of its own, so that the loss of a rank breaks no other pair.
// Thread: one at a time. Lifetime: outlives the groups of the context, which use its memory;
// Stop comes before their end.
class GroupLinks {
 public:
  // All ranks call it. Fills `sockets`, one per rank; none for this one. `threads`: the
  // limit of those that move the bytes. Throws as NewGroup. Errors: kExhausted, kSystem.
  static Result<std::unique_ptr<GroupLinks>> Make(Context& context, int threads,
                                                  std::vector<Fd>& sockets);
  GroupLinks(const GroupLinks&) = delete;
  GroupLinks& operator=(const GroupLinks&) = delete;
  ~GroupLinks() { Stop(); }

  // Waits until the bytes of connections that are closed have arrived, at most until then.
  void AwaitEnd(TimePoint deadline) EXCLUDES(mutex_);
  void Stop() EXCLUDES(mutex_);  // moves no bytes from now on

 private:
  // Thread that moves the bytes of some pipes.
  struct Mover {
    std::shared_ptr<const Fd> wake;  // eventfd; owners: this and the messages under way
    std::vector<std::unique_ptr<GroupPipe>> pipes = {};
    std::thread thread = {};
  };

  GroupLinks() = default;

  static Result<Fd> Add(ProcessGroup& group, Mover& mover);
  void Run(Mover& mover) EXCLUDES(mutex_);

  std::vector<std::unique_ptr<Mover>> movers_;
  Mutex mutex_;
  CondVar changed_;
  size_t running_ GUARDED_BY(mutex_) = 0;  // movers with a pipe that is not over
  bool is_stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace rankrun::rpc

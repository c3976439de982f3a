#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/uv/uv_poll.h"
#include "base/uv/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Reads one descriptor, our standard input, for consecutive attempts of a job.
// Input that no worker of one attempt has received is kept for the next. An
// input that can only be read by blocking takes one thread of libuv's pool at
// most.
// Thread: loop.  Lifetime: of the job; may end during a read.
class StdinSource {
 public:
  // `fd` must stay open longer. Reads nothing before the first Read. `may_read` is asked before
  // each read from a terminal, whose keys may be for a shell.
  StdinSource(Loop& loop, int fd, std::function<bool()> may_read);
  StdinSource(const StdinSource&) = delete;
  StdinSource& operator=(const StdinSource&) = delete;
  ~StdinSource();

  // Returns whether it is a terminal that may be read now. Opens it; one that only the user who
  // has logged in may open is none.
  bool HasTerminal();

  // Calls `on_read` once with the next bytes, never before it returns. No bytes
  // mean the end of the input, or an input that cannot be read.
  void Read(std::function<void(std::string bytes)> on_read);

  // Reads nothing until Pause(false), except for a read that is under way in the pool.
  void Pause(bool paused);

  // Drops the pending `on_read` because its owner is gone. The next reader gets
  // `rest` first.
  void GiveBack(const std::string& rest);

 private:
  struct PoolRead;

  void StopReading();
  void Open();
  void Answer();
  void ReadReady();
  void ReadInPool();
  void OnReadInPool(const std::string& bytes);
  void Deliver(std::string bytes);

  Loop& loop_;
  int fd_;
  const std::function<bool()> may_read_;
  const bool is_terminal_;
  Fd reopened_;  // the same input, non-blocking for us only
  bool opened_ = false;
  bool paused_ = false;
  std::function<void(std::string)> on_read_;  // empty: no read is pending
  std::string kept_;                          // read and not yet delivered
  Timer answer_;
  Timer retry_;                          // of a read from a terminal that was not allowed
  std::unique_ptr<Poll> poll_;           // null: the pool reads it
  std::shared_ptr<PoolRead> pool_read_;  // shared with the pool's job; null: none
};

}  // namespace rankrun::agent

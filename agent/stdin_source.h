#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/uv_poll.h"
#include "base/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Reads one descriptor, our standard input, for the attempts of a job, one
// after the other: what no worker of one has got is for the next. One that can
// only be read by blocking takes one thread of libuv's pool at most.
// Thread: loop.  Lifetime: of the job; may end while it reads.
class StdinSource {
 public:
  // `fd` stays open longer. Nothing is read before the first Read.
  StdinSource(Loop& loop, int fd);
  StdinSource(const StdinSource&) = delete;
  StdinSource& operator=(const StdinSource&) = delete;
  ~StdinSource();

  // `on_read` gets what comes next; nothing at the end, which is also what an
  // input that cannot be read has. Called once, never from here.
  void Read(std::function<void(std::string bytes)> on_read);

  // Whoever has read until now is gone: forgets its `on_read`, and the next one
  // gets `rest` first.
  void GiveBack(const std::string& rest);

 private:
  struct PoolRead;

  void Open();
  void Answer();
  void ReadReady();
  void ReadInPool();
  void OnReadInPool(const std::string& bytes);
  void Deliver(std::string bytes);

  Loop& loop_;
  int fd_;
  Fd reopened_;  // the same, non-blocking for us only
  bool opened_ = false;
  std::function<void(std::string)> on_read_;  // empty: nobody waits
  std::string kept_;                          // has been read for nobody yet
  Timer answer_;
  std::unique_ptr<Poll> poll_;           // null: it is read in the pool
  std::shared_ptr<PoolRead> pool_read_;  // shared with the pool's job; null: there is none
};

}  // namespace rankrun::agent

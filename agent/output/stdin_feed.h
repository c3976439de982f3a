#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/output/stdin_source.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/uv/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Copies our standard input to every worker of an attempt. The slowest worker
// limits the speed; a worker that has closed its end is skipped. Input that no
// worker has received goes back to the source at the end.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class StdinFeed {
 public:
  // `source` must outlive the feed. Reads nothing before all `workers` have
  // started or were given up.
  StdinFeed(Loop& loop, StdinSource& source, int workers);
  StdinFeed(const StdinFeed&) = delete;
  StdinFeed& operator=(const StdinFeed&) = delete;
  ~StdinFeed();

  // Opens the descriptor that the worker inherits. May be repeated. Errors:
  // kExhausted, kSystem.
  Result<void> Prepare(int local_rank);
  int worker_end(int local_rank) const;

  // Report the outcome of a worker's start; one call for each worker.
  void OnStarted(int local_rank);
  void OnGivenUp(int local_rank);

 private:
  struct Reader {
    Fd worker_end = Fd();   // until the worker has its copy
    Fd write_end = Fd();    // empty: it was not started, or the input has ended
    bool closed = false;    // by the worker
    size_t sent_bytes = 0;  // of piece_
    std::unique_ptr<Poll> poll = {};

    bool left_out() const { return !write_end || closed; }
  };

  Reader& At(int local_rank) { return readers_[static_cast<size_t>(local_rank)]; }
  void OnSettled();
  void ReadMore();
  void OnRead(std::string bytes);
  void Send(Reader& reader);
  void Continue();

  Loop& loop_;
  StdinSource& source_;
  std::vector<Reader> readers_;
  int unsettled_;      // workers that have neither started nor been given up
  std::string piece_;  // data being sent
};

}  // namespace rankrun::agent

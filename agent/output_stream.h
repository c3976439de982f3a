#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/line_buffer.h"
#include "agent/output_channel.h"
#include "agent/output_sink.h"
#include "base/result.h"
#include "base/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// What comes out of one descriptor of a worker: read as fast as the sinks take
// it, given to each of them, its end kept for a report.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class OutputStream {
 public:
  struct Options {
    std::vector<std::unique_ptr<OutputSink>> sinks = {};
    bool terminal = false;  // else a pipe
    size_t pipe_bytes = 65536;
    std::string file = {};  // where a sink keeps all of it; empty: none does
  };

  OutputStream(Loop& loop, Options options);

  // Makes what the worker inherits. Can be repeated after an error.
  // Errors: kExhausted, kSystem.
  Result<void> Prepare();
  int worker_end() const { return channel_.worker_end.get(); }

  // Undoes Prepare().
  void TakeBack();

  // The worker has its copy, or will never want one.
  void Start();
  void GiveUp() { channel_.worker_end.Reset(); }

  // Makes the worker's terminal as large as our standard output is by now;
  // false if one of the two is none.
  bool FollowTerminalSize();

  // Reads again if the sinks have room.
  void Resume();

  // Reads what has been written by now, unless the sinks are full.
  void CatchUp();

  // Reads what has been written by now, though the sinks be full, and ends them.
  void Finish();

  // Closes what is at its end. Not inside a callback.
  void Release();

  // At most the last 64 KiB.
  std::string Tail() const { return tail_.Tail(); }
  const std::string& file() const { return options_.file; }

 private:
  bool SinksFull() const;
  bool ReadOnce();
  void Drain();

  Loop& loop_;
  Options options_;
  OutputChannel channel_;
  TailBuffer tail_;
  bool started_ = false;
  bool held_ = false;  // until the sinks have room
  bool ended_ = false;
  std::unique_ptr<Poll> poll_;
};

}  // namespace rankrun::agent

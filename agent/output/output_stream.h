#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/output/line_buffer.h"
#include "agent/output/output_channel.h"
#include "agent/output/output_sink.h"
#include "base/clock.h"
#include "base/result.h"
#include "base/uv/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Output of one descriptor of a worker. Reads as fast as the sinks accept data,
// passes it to each of them, and keeps the last bytes for a report.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class OutputStream {
 public:
  struct Options {
    std::vector<std::unique_ptr<OutputSink>> sinks = {};
    bool terminal = false;  // false: a pipe
    size_t pipe_bytes = 65536;
    std::string file = {};  // path at which a sink stores all output; empty: none
  };

  OutputStream(Loop& loop, Options options);

  // Opens the descriptors that the worker inherits. May be repeated after an
  // error.
  // Errors: kExhausted, kSystem.
  Result<void> Prepare();
  int worker_end() const { return channel_.worker_end.get(); }

  // Undoes Prepare().
  void TakeBack();

  // Call Start once the worker has its copy, or GiveUp if it will never start.
  void Start();
  void GiveUp() { channel_.worker_end.Reset(); }

  // Gives the worker's terminal the present size of our standard output.
  // Returns false if one of them is not a terminal.
  bool FollowTerminalSize();

  // Continues to read if the sinks have room.
  void Resume();

  // Shows a line that the worker has begun, because it waits for input.
  void ShowOpenLine();

  // Reads the data written so far, unless the sinks are full.
  void CatchUp();

  // Reads the data written so far, even if the sinks are full, and ends the
  // sinks.
  void Finish();

  // Closes the descriptor of a stream that has ended. Not inside a callback.
  void Release();

  // Returns at most the last 64 KiB, or the last `max_bytes`.
  std::string Tail() const { return tail_.Tail(); }
  std::string Tail(size_t max_bytes) const { return tail_.Last(max_bytes); }
  // The same bytes by their position in the stream, and the time of the last one.
  TailBuffer::Part After(uint64_t position, size_t max_bytes) const {
    return tail_.After(position, max_bytes);
  }
  const TailBuffer& tail() const { return tail_; }
  TimePoint last_read() const { return last_read_; }
  const std::string& file() const { return options_.file; }

 private:
  bool SinksFull() const;
  bool ReadOnce();
  void Drain();

  Loop& loop_;
  Options options_;
  OutputChannel channel_;
  TailBuffer tail_;
  TimePoint last_read_{};
  bool started_ = false;
  bool held_ = false;  // not reading until the sinks have room
  bool ended_ = false;
  std::unique_ptr<Poll> poll_;
};

}  // namespace rankrun::agent

#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Appends lines to a file, a named pipe or /dev/fd/N, in order, each with one
// write. Writes from libuv's pool, so that a slow or broken file does not block
// the loop.
// Thread: loop.  Lifetime: may end at any time, also inside its callbacks;
// lines that still wait are discarded.
class EventFile {
 public:
  struct Callbacks {
    // Gets a sentence, once per reason in a row.
    std::function<void(const std::string& message)> on_failure;
    std::function<void()> on_progress;  // after each batch of lines
  };

  // Opens `path` for appending; may block. A named pipe needs no reader.
  // Errors: kInvalid, "--events <path>: <reason>".
  static Result<Fd> OpenDescriptor(const std::string& path);
  static Result<std::unique_ptr<EventFile>> Open(Loop& loop, const std::string& path,
                                                 Callbacks callbacks);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  // Writes a whole line. Drops and counts it if 1 MiB waits already.
  void Write(std::string line);

  // Returns whether no line waits.
  bool idle() const { return !writing_; }

  // Returns the number of dropped lines and resets it; 0 while writing fails.
  size_t TakeLoss();

 private:
  struct Target;
  struct Batch;

  EventFile(Loop& loop, std::string path, Callbacks callbacks);
  void WriteWaiting();
  void OnWritten(Batch& batch);
  void ReportFailure(const std::string& reason);

  Loop& loop_;
  const std::string path_;
  Callbacks callbacks_;
  std::shared_ptr<Target> target_;    // shared with the batch in the pool
  std::shared_ptr<EventFile*> self_;  // likewise; null once this object is gone
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;  // includes the batch in the pool
  bool writing_ = false;      // a batch is in the pool
  bool works_ = true;         // the last batch was written
  size_t dropped_ = 0;        // lines
  std::string last_failure_;
};

}  // namespace rankrun::agent

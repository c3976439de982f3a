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

// Lines appended to a file, a named pipe or /dev/fd/N, each by one write: in
// order, from libuv's pool, so that a slow or broken file holds nothing up.
// Thread: loop.  Lifetime: may end at any time, also inside its callbacks;
// what waits then is discarded.
class EventFile {
 public:
  struct Callbacks {
    std::function<void(const std::string& what)>
        on_failure;                     // a sentence, once for each reason in a row
    std::function<void()> on_progress;  // after each turn of writing
  };

  // Opens for appending. Blocks as the file does. A named pipe needs no reader.
  // Errors: kInvalid, "--events <path>: <reason>".
  static Result<Fd> OpenDescriptor(const std::string& path);
  static Result<std::unique_ptr<EventFile>> Open(Loop& loop, const std::string& path,
                                                 Callbacks callbacks);
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;
  ~EventFile();

  // Of a whole line. Dropped and counted if 1 MiB waits already.
  void Write(std::string line);

  // Nothing waits; what could not be written is dropped.
  bool idle() const { return !writing_; }

  // Lines dropped before writing worked again, once; 0 while it does not.
  size_t TakeLoss();

 private:
  struct Target;
  struct Turn;

  EventFile(Loop& loop, std::string path, Callbacks callbacks);
  void WriteWaiting();
  void OnWritten(Turn& turn);
  void Complain(const std::string& what);

  Loop& loop_;
  const std::string path_;
  Callbacks callbacks_;
  std::shared_ptr<Target> target_;    // shared with the turn that is in the pool
  std::shared_ptr<EventFile*> self_;  // likewise; null once this object is gone
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;  // with those in the pool
  bool writing_ = false;      // a turn is in the pool
  bool works_ = true;         // the last turn did
  size_t dropped_ = 0;        // lines
  std::string last_complaint_;
};

}  // namespace rankrun::agent

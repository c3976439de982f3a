#pragma once

#include <functional>

#include "base/result.h"
#include "base/uv_handle.h"

namespace rankrun {

class Loop;

// Calls `on_ready` whenever a descriptor is readable (or writable, if that was
// asked for), hung up or broken: the callback finds out which by reading or
// writing. For pidfds, pipes and sockets that
// belong to somebody else; it does not own the descriptor, which must stay
// open longer. Thread: loop.  Lifetime: may not end inside its own callback.
class Poll {
 public:
  enum class Event { kReadable, kWritable };

  // Errors: kSystem for a descriptor that cannot be polled (a regular file).
  static Result<std::unique_ptr<Poll>> Open(Loop& loop, int fd, std::function<void()> on_ready,
                                            Event event = Event::kReadable);
  // The same for readable ones that others may share with us: Open makes a
  // descriptor non-blocking, this one leaves it as it is.
  static Result<std::unique_ptr<Poll>> OpenShared(Loop& loop, int fd,
                                                  std::function<void()> on_ready);
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;

  void Start();  // level-triggered; idempotent
  void Stop();   // no call after this returns

 private:
  Poll(std::function<void()> on_ready, Event event);

  std::function<void()> on_ready_;
  Event event_;
  UvHandle<uv_poll_s> handle_;
};

}  // namespace rankrun

#pragma once

#include <functional>

#include "base/result.h"
#include "base/uv/uv_handle.h"

namespace rankrun {

class Loop;

// Calls `on_ready` whenever a descriptor is readable (or writable, if
// requested), hung up or broken; the callback finds out which by reading or
// writing. For pidfds, pipes and sockets of other owners: the descriptor must
// stay open longer than the Poll.
// Thread: loop.  Lifetime: may not end inside its own callback.
class Poll {
 public:
  enum class Event { kReadable, kWritable };

  // Errors: kSystem for a descriptor that cannot be polled (a regular file).
  static Result<std::unique_ptr<Poll>> Open(Loop& loop, int fd, std::function<void()> on_ready,
                                            Event event = Event::kReadable);
  // Opens a readable descriptor that other processes may share. Open makes the
  // descriptor non-blocking, this function leaves it unchanged.
  static Result<std::unique_ptr<Poll>> OpenShared(Loop& loop, int fd,
                                                  std::function<void()> on_ready);
  Poll(const Poll&) = delete;
  Poll& operator=(const Poll&) = delete;

  void Start();  // level-triggered; idempotent
  void Stop();   // `on_ready` is not called after this returns

 private:
  Poll(std::function<void()> on_ready, Event event);

  std::function<void()> on_ready_;
  Event event_;
  UvHandle<uv_poll_s> handle_;
};

}  // namespace rankrun

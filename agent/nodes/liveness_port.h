#pragma once

#include <cstdint>
#include <memory>

#include "agent/guardian/incarnation.h"
#include "base/result.h"
#include "base/uv/uv_listener.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// A port that takes connections as long as this node's guardian or agent lives, because the
// guardian holds its socket, too. Connections are closed at once: a refused one is the news.
// Thread: loop.
class LivenessPort {
 public:
  // Listens on the socket that the guardian opened before it forked this agent; an earlier
  // incarnation may have begun that. A socket of the agent alone would be refused after the agent's
  // death, while its workers may still live.
  // Errors: those of ListenOnFreePort and Listener::Adopt; kSystem: the guardian has no socket.
  static Result<std::unique_ptr<LivenessPort>> Open(Loop& loop, Incarnation& incarnation);
  LivenessPort(const LivenessPort&) = delete;
  LivenessPort& operator=(const LivenessPort&) = delete;

  uint16_t number() const { return listener_->address().port(); }

 private:
  explicit LivenessPort(std::unique_ptr<Listener> listener) : listener_(std::move(listener)) {}

  std::unique_ptr<Listener> listener_;
};

}  // namespace rankrun::agent

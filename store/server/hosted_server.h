#pragma once

#include <sys/types.h>

#include <memory>

#include "base/result.h"
#include "store/server/server.h"

namespace rankrun::store {

// A store server with its own loop and thread, for a process without an event
// loop. The thread receives no signals.
// Thread: one at a time.
// Lifetime: the destructor closes the server's connections and ends the thread.
// In a forked child, which has no such thread, it does nothing.
class HostedServer {
 public:
  // Returns when the server accepts connections. Errors: those of
  // Server::Listen; kExhausted when the thread cannot be created.
  static Result<std::unique_ptr<HostedServer>> Start(ServerOptions options);
  HostedServer(const HostedServer&) = delete;
  HostedServer& operator=(const HostedServer&) = delete;
  ~HostedServer();

  uint16_t port() const { return port_; }

 private:
  struct Running;  // state that the thread uses

  HostedServer(std::unique_ptr<Running> running, uint16_t port);

  const pid_t process_;
  const uint16_t port_;
  std::unique_ptr<Running> running_;
};

}  // namespace rankrun::store

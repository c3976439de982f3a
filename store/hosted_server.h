#pragma once

#include <sys/types.h>

#include <memory>

#include "base/result.h"
#include "store/server.h"

namespace rankrun::store {

// A store server with a loop on a thread of its own, for a process that has no
// event loop. The thread takes no signals.
// Thread: one at a time.
// Lifetime: the destructor closes the server's connections and ends the thread.
// In a forked child, where there is no such thread, it does nothing.
class HostedServer {
 public:
  // Serves when it returns. Errors: those of Server::Listen; kExhausted when
  // there can be no more threads.
  static Result<std::unique_ptr<HostedServer>> Start(ServerOptions options);
  HostedServer(const HostedServer&) = delete;
  HostedServer& operator=(const HostedServer&) = delete;
  ~HostedServer();

  uint16_t port() const { return port_; }

 private:
  struct Running;  // what the thread uses

  HostedServer(std::unique_ptr<Running> running, uint16_t port);

  const pid_t process_;
  const uint16_t port_;
  std::unique_ptr<Running> running_;
};

}  // namespace rankrun::store

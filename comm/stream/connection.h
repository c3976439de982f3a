#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/private_api.h"

namespace rankrun::comm::stream {

// Bytes to and from one peer, in the order sent. No function waits.
// Thread: one at a time.
class Connection {
 public:
  virtual ~Connection() = default;

  // Descriptor for poll(2): readable when Receive has data or an error, writable
  // when Send takes data.
  virtual int fd() const = 0;
  // Makes the descriptor readable if it lags behind and data has arrived.
  virtual void RefreshFd() {}

  // Write from and read into `parts`, in this order. Return the number of bytes;
  // a negative number of errno after an error, -EAGAIN if nothing can be moved
  // now. Receive returns 0 when the peer has closed the connection.
  virtual ssize_t Send(std::span<const iovec> parts) = 0;
  virtual ssize_t Receive(std::span<const iovec> parts) = 0;

  // Ends the connection in both directions.
  virtual void ShutDown() = 0;
};

// Returns the connection over a non-blocking stream socket.
RANKRUN_PRIVATE_API std::unique_ptr<Connection> ConnectionOver(Fd socket);

// Connections of this rank with one peer; the peer's are in the same order.
struct PeerConnections {
  std::unique_ptr<Connection> control = {};            // for messages and farewells
  std::vector<std::unique_ptr<Connection>> data = {};  // for collectives
};

}  // namespace rankrun::comm::stream

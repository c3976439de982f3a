#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/net/peer_user.h"

namespace rankrun::test {

// Returns whether the kernel reports the users of connections from this host.
inline bool KernelTellsUsers() {
  SocketAddress any = *SocketAddress::FromNumeric("127.0.0.1", 0);
  Fd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  Fd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(listener.get(), any.raw(), any.raw_size()) != 0) return false;
  if (listen(listener.get(), 1) != 0) return false;
  SocketAddress server = *SocketAddress::LocalOf(listener.get());
  if (connect(client.get(), server.raw(), server.raw_size()) != 0) return false;
  SocketAddress peer = *SocketAddress::LocalOf(client.get());
  return PeerUsers().Find(server, peer).kind != PeerUser::Kind::kUnknown;
}

}  // namespace rankrun::test

#include "agent/nodes/liveness_port.h"

#include <utility>

#include "base/net/listen_socket.h"
#include "base/uv/uv_stream.h"

namespace rankrun::agent {

Result<std::unique_ptr<LivenessPort>> LivenessPort::Open(Loop& loop, Incarnation& incarnation) {
  Fd socket = incarnation.TakeLivenessSocket();
  if (!socket) return Error{ErrorCode::kSystem, "the guardian could not open a socket"};
  if (auto port = ListenOnFreePort(socket.get()); !port) return std::move(port).error();
  auto listener = Listener::Adopt(loop, std::move(socket), [](std::unique_ptr<Stream>) {});
  if (!listener) return std::move(listener).error();
  return std::unique_ptr<LivenessPort>(new LivenessPort(std::move(*listener)));
}

}  // namespace rankrun::agent

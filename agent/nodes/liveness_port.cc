#include "agent/nodes/liveness_port.h"

#include <utility>

#include "base/net/listen_socket.h"
#include "base/uv/uv_stream.h"

namespace rankrun::agent {
namespace {

Result<Fd> OpenShared(GuardianLink& link) {
  auto opened = ListenOnFreePort();
  if (!opened) return opened;
  LivenessSocket shared{std::move(*opened)};
  if (link.Send(shared)) return std::move(shared.socket);
  return Error{ErrorCode::kSystem, "the guardian did not take the socket"};
}

}  // namespace

Result<std::unique_ptr<LivenessPort>> LivenessPort::Open(Loop& loop, Incarnation& incarnation) {
  Fd socket = incarnation.TakeLivenessSocket();
  if (!socket) {
    auto opened = OpenShared(incarnation.link());
    if (!opened) return std::move(opened).error();
    socket = std::move(*opened);
  }
  auto listener = Listener::Adopt(loop, std::move(socket), [](std::unique_ptr<Stream>) {});
  if (!listener) return std::move(listener).error();
  return std::unique_ptr<LivenessPort>(new LivenessPort(std::move(*listener)));
}

}  // namespace rankrun::agent

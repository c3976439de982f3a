#include "comm/tcp/acceptor.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace rankrun::comm::tcp {

void Acceptor::AddPollEntries(std::vector<pollfd>& entries, TimePoint now) const {
  const short events = HasPlace(now) ? POLLIN : 0;
  for (const Fd& listener : context_.listeners.sockets) {
    entries.push_back({.fd = listener.get(), .events = events, .revents = 0});
  }
  for (const Unidentified& connection : unidentified_) {
    const HandshakeSocket& socket = connection.socket;
    entries.push_back({.fd = socket.fd(), .events = socket.events(), .revents = 0});
  }
}

// Returns whether a connection can be accepted now.
bool Acceptor::HasPlace(TimePoint now) const {
  return unidentified_.size() < kMaxUnidentified ||
         now >= unidentified_.front().since + kMinIdentificationTime;
}

TimePoint Acceptor::NextDeadline(TimePoint now) const {
  if (unidentified_.empty()) return TimePoint::max();
  TimePoint oldest = unidentified_.front().since;
  return oldest + (HasPlace(now) ? kIdentificationTime : Duration(kMinIdentificationTime));
}

Result<void> Acceptor::Advance(std::span<const pollfd> entries, TimePoint now) {
  size_t listeners = context_.listeners.sockets.size();
  size_t i = listeners;
  for (Unidentified& connection : unidentified_) {
    if (entries[i++].revents != 0) AdvanceHandshake(connection);
  }
  RemoveFinished(now);
  for (const pollfd& listener : entries.first(listeners)) {
    if (listener.revents == 0) continue;
    if (auto ok = AcceptFrom(listener.fd, now); !ok) return ok;
  }
  return {};
}

void Acceptor::AdvanceHandshake(Unidentified& connection) {
  HandshakeSocket::State state = connection.socket.Advance();
  connection.is_over = state != HandshakeSocket::State::kPending;
  if (state != HandshakeSocket::State::kProven) return;
  const StreamId id = connection.socket.id();
  table_.Put(static_cast<int>(id.dialer), id.stream, connection.socket.TakeSocket());
}

void Acceptor::RemoveFinished(TimePoint now) {
  std::erase_if(unidentified_, [&](const Unidentified& connection) {
    return connection.is_over || now >= connection.since + kIdentificationTime;
  });
}

// Accepts as many connections as there are places.
Result<void> Acceptor::AcceptFrom(int listener_fd, TimePoint now) {
  while (HasPlace(now)) {
    Fd fd(accept4(listener_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!fd && IsExhaustion(errno)) {
      return SocketError("accept a connection", errno, context_.need);
    }
    if (!fd) return {};  // none waits, or it is lost already
    SetStreamOptions(fd.get());
    if (unidentified_.size() >= kMaxUnidentified) unidentified_.pop_front();
    unidentified_.push_back(
        {.socket =
             HandshakeSocket(std::move(fd), ListenerHandshake(context_.keys, context_.own_rank)),
         .since = now});
  }
  return {};
}

}  // namespace rankrun::comm::tcp

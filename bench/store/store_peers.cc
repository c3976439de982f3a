#include "bench/store/store_peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "store/wire/wire.h"

namespace rankrun::bench {
namespace {

constexpr size_t kEvents = 512;
constexpr size_t kBufferBytes = 256 * 1024;
constexpr size_t kGreetingsAtATime = 256;
constexpr int kMaxSources = 100;
constexpr size_t kFilesOfOurOwn = 32;

Error SystemError(const std::string& what, int error) {
  return {ErrorCode::kSystem, what + ": " + strerror(error)};
}

Error Lost(size_t peer, const SocketAddress& server, const std::string& why) {
  return {ErrorCode::kPeerLost,
          "connection " + std::to_string(peer) + " to " + server.ToString() + ": " + why};
}

}  // namespace

Result<std::unique_ptr<Peers>> Peers::Create(const SocketAddress& server,
                                             std::chrono::milliseconds patience) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return SystemError("make an epoll", errno);
  return std::unique_ptr<Peers>(new Peers(server, patience, std::move(epoll)));
}

Peers::Peers(const SocketAddress& server, std::chrono::milliseconds patience, Fd epoll)
    : server_(server),
      patience_(patience),
      epoll_(std::move(epoll)),
      events_(kEvents),
      buffer_(kBufferBytes) {}

Result<void> Peers::Add(std::string first) {
  Fd socket(::socket(server_.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket) return SystemError("make socket " + std::to_string(peers_.size()), errno);
  int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (auto ok = Connect(socket.get()); !ok) return ok;
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = peers_.size();
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0) {
    return SystemError("watch a socket", errno);
  }
  peers_.push_back({std::move(socket), std::move(first)});
  return {};
}

Result<void> Peers::Connect(int socket) {
  for (;;) {
    if (sources_ > 0) {
      sockaddr_in source{};
      source.sin_family = AF_INET;
      source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + static_cast<uint32_t>(sources_));
      int on = 1;  // the port is chosen by connect, so that only the pair must be free
      setsockopt(socket, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
      if (bind(socket, reinterpret_cast<sockaddr*>(&source), sizeof source) != 0) {
        return SystemError("bind 127.0.0." + std::to_string(1 + sources_), errno);
      }
    }
    if (connect(socket, server_.raw(), server_.raw_size()) == 0 || errno == EINPROGRESS) return {};
    bool ports_are_out = errno == EADDRNOTAVAIL && server_.is_loopback() &&
                         server_.family() == AF_INET && sources_ < kMaxSources;
    if (!ports_are_out) return SystemError("connect " + server_.ToString(), errno);
    sources_ += 1;
  }
}

Result<void> Peers::Send(size_t number, std::string_view bytes) {
  Peer& peer = peers_[number];
  if (peer.connected && peer.unsent.empty()) {
    ssize_t sent = send(peer.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return Lost(number, server_, strerror(errno));
    if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
  }
  peer.unsent += bytes;
  return {};
}

Result<void> Peers::Poll(const OnBytes& on_bytes) {
  int count = epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
  return Dispatch(count, on_bytes);
}

Result<void> Peers::Wait(const OnBytes& on_bytes) {
  int count = epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()),
                         static_cast<int>(patience_.count()));
  return DispatchSome(count, on_bytes);
}

Result<void> Peers::Spin(const OnBytes& on_bytes) {
  TimePoint deadline = MonotonicClock().Now() + patience_;
  int count = 0;
  do {
    count = epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
  } while (count == 0 && MonotonicClock().Now() < deadline);
  return DispatchSome(count, on_bytes);
}

Result<void> Peers::DispatchSome(int count, const OnBytes& on_bytes) {
  if (count == 0) {
    return Error{ErrorCode::kTimeout, server_.ToString() + " sent nothing for " +
                                          std::to_string(patience_.count()) + " ms"};
  }
  return Dispatch(count, on_bytes);
}

Result<void> Peers::Dispatch(int count, const OnBytes& on_bytes) {
  if (count < 0 && errno != EINTR) return SystemError("wait for an event", errno);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events_[static_cast<size_t>(i)];
    size_t number = event.data.u64;
    if (event.events & EPOLLOUT) {
      peers_[number].connected = true;
      if (auto ok = Flush(number); !ok) return ok;
    }
    if (event.events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
      bool to_the_end = (event.events & EPOLLRDHUP) != 0;
      if (auto ok = Receive(number, to_the_end, on_bytes); !ok) return ok;
    }
  }
  return {};
}

Result<void> Peers::Flush(size_t number) {
  if (peers_[number].unsent.empty()) return {};
  return Send(number, std::exchange(peers_[number].unsent, {}));
}

Result<void> Peers::Receive(size_t number, bool to_the_end, const OnBytes& on_bytes) {
  ssize_t count = 0;
  do {
    count = recv(peers_[number].socket.get(), buffer_.data(), buffer_.size(), 0);
    if (count == 0) return Lost(number, server_, "closed by the server");
    if (count < 0 && errno == EAGAIN) return {};
    if (count < 0) return Lost(number, server_, strerror(errno));
    auto ok = on_bytes(number, {buffer_.data(), static_cast<size_t>(count)});
    if (!ok) return ok;
    // A short read has emptied the socket, and later data causes a new event.
  } while (to_the_end || static_cast<size_t>(count) == buffer_.size());
  return {};
}

Result<void> AddAndGreet(Peers& peers, size_t count,
                         const std::function<Greeting(size_t peer)>& greeting) {
  size_t first = peers.size();
  size_t greeted = 0;
  std::vector<std::string> missing(count);  // missing part of each answer
  auto on_bytes = [&](size_t peer, std::string_view bytes) -> Result<void> {
    std::string& expected = missing[peer - first];
    if (bytes.size() > expected.size() || !expected.starts_with(bytes)) {
      return Error{ErrorCode::kProtocol,
                   "connection " + std::to_string(peer) + ": a wrong answer to its greeting"};
    }
    expected.erase(0, bytes.size());
    greeted += expected.empty() ? 1 : 0;
    return {};
  };
  for (size_t added = 0; greeted < count;) {
    if (added < count && added < greeted + kGreetingsAtATime) {
      Greeting next = greeting(first + added);
      missing[added++] = std::move(next.expect);
      if (auto ok = peers.Add(std::move(next.send)); !ok) return ok;
    } else if (auto ok = peers.Wait(on_bytes); !ok) {
      return std::move(ok).error().In("greet the server, " + std::to_string(greeted) + " of " +
                                      std::to_string(count) + " done");
    }
  }
  return {};
}

Greeting StoreGreeting(size_t peer) {
  auto nonce = static_cast<uint32_t>(peer);
  Greeting greeting{store::EncodeValidate() + store::EncodeRequest(store::PingRequest{nonce}), {}};
  store::AppendReply(greeting.expect, store::PingReply{nonce});
  return greeting;
}

Result<void> AllowOpenFiles(size_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SystemError("read the limit of files", errno);
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return SystemError("raise the limit of files", errno);
  if (limit.rlim_cur >= count + kFilesOfOurOwn) return {};
  return Error{ErrorCode::kSystem,
               "open " + std::to_string(count) +
                   " connections: the hard limit of open files (ulimit -Hn) is " +
                   std::to_string(limit.rlim_max) + ", it must be at least " +
                   std::to_string(count + kFilesOfOurOwn)};
}

}  // namespace rankrun::bench

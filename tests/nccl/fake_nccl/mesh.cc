#include "tests/nccl/fake_nccl/mesh.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace rankrun::fake_nccl {
namespace {

// Address of a rank, in the abstract name space.
socklen_t AddressOf(const std::string& name, int rank, sockaddr_un& address) {
  std::string path = name + "/" + std::to_string(rank);
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, path.data(), path.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
}

// One direction of the traffic with a peer.
template <typename Part>
struct Lane {
  std::vector<Part> parts;
  size_t next = 0;
  size_t moved = 0;  // bytes of the next part

  bool is_done() {
    while (next < parts.size() && parts[next].bytes == moved) {
      next += 1;
      moved = 0;
    }
    return next == parts.size();
  }
};

// Moves what it can without waiting. `move` returns as send(2). Returns false if
// the peer is lost.
template <typename Part, typename Move>
bool Advance(Lane<Part>& lane, Move move) {
  while (!lane.is_done()) {
    Part& part = lane.parts[lane.next];
    ssize_t moved = move(part.data + lane.moved, part.bytes - lane.moved);
    if (moved < 0 && errno == EAGAIN) return true;
    if (moved <= 0) return false;
    lane.moved += static_cast<size_t>(moved);
  }
  return true;
}

void CopyToMyself(Lane<Out>& outs, Lane<In>& ins) {
  while (!outs.is_done() && !ins.is_done()) {
    const Out& out = outs.parts[outs.next++];
    const In& in = ins.parts[ins.next++];
    std::memmove(in.data, out.data, out.bytes);
  }
}

}  // namespace

Mesh::Mesh(std::string name, int rank, int size)
    : name_(std::move(name)),
      rank_(rank),
      size_(size),
      peers_(static_cast<size_t>(size)),
      aborted_(eventfd(0, EFD_CLOEXEC)) {}

void Mesh::Abort() { eventfd_write(aborted_.get(), 1); }

void Mesh::AwaitAbort() {
  std::vector<pollfd> waits;
  static_cast<void>(Poll(waits));
}

bool Mesh::Poll(std::vector<pollfd>& waits) {
  waits.push_back({.fd = aborted_.get(), .events = POLLIN, .revents = 0});
  while (poll(waits.data(), waits.size(), -1) < 0 && errno == EINTR) continue;
  bool goes_on = waits.back().revents == 0;
  waits.pop_back();
  return goes_on;
}

bool Mesh::Connect() {
  sockaddr_un address;
  socklen_t length = AddressOf(name_, rank_, address);
  Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener.get(), size_) != 0) {
    return false;
  }
  for (int peer = 0; peer < rank_; ++peer) {
    if (!Dial(peer)) return false;
  }
  for (int peer = rank_ + 1; peer < size_; ++peer) {
    if (!Accept(listener)) return false;
  }
  return true;
}

bool Mesh::Dial(int peer) {
  sockaddr_un address;
  socklen_t length = AddressOf(name_, peer, address);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  while (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
    pollfd aborted{.fd = aborted_.get(), .events = POLLIN, .revents = 0};
    if (poll(&aborted, 1, 1) > 0) return false;  // a peer that listens later has no event
  }
  auto own = static_cast<int32_t>(rank_);
  if (send(fd.get(), &own, sizeof own, MSG_NOSIGNAL) != sizeof own) return false;
  peers_[static_cast<size_t>(peer)] = std::move(fd);
  return true;
}

bool Mesh::Accept(Fd& listener) {
  std::vector<pollfd> waits{{.fd = listener.get(), .events = POLLIN, .revents = 0}};
  if (!Poll(waits)) return false;
  Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  waits = {{.fd = fd.get(), .events = POLLIN, .revents = 0}};
  int32_t peer = -1;
  if (!Poll(waits) || recv(fd.get(), &peer, sizeof peer, 0) != sizeof peer) return false;
  peers_[static_cast<size_t>(peer)] = std::move(fd);
  return true;
}

bool Mesh::Exchange(const std::vector<Out>& outs, const std::vector<In>& ins) {
  std::vector<Lane<Out>> sends(peers_.size());
  std::vector<Lane<In>> receives(peers_.size());
  for (const Out& out : outs) sends[static_cast<size_t>(out.peer)].parts.push_back(out);
  for (const In& in : ins) receives[static_cast<size_t>(in.peer)].parts.push_back(in);
  pollfd aborted{.fd = aborted_.get(), .events = POLLIN, .revents = 0};
  if (poll(&aborted, 1, 0) != 0) return false;
  CopyToMyself(sends[static_cast<size_t>(rank_)], receives[static_cast<size_t>(rank_)]);
  while (true) {
    std::vector<pollfd> waits;
    bool is_done = true;
    for (size_t peer = 0; peer < peers_.size(); ++peer) {
      if (peer == static_cast<size_t>(rank_)) continue;
      int fd = peers_[peer].get();
      bool lives =
          Advance(sends[peer],
                  [&](auto* data, size_t n) { return send(fd, data, n, MSG_NOSIGNAL); }) &&
          Advance(receives[peer], [&](auto* data, size_t n) { return recv(fd, data, n, 0); });
      bool sent = sends[peer].is_done(), received = receives[peer].is_done();
      if (sent && received) continue;
      is_done = false;
      if (!lives) continue;
      auto events = static_cast<short>((sent ? 0 : POLLOUT) | (received ? 0 : POLLIN));
      waits.push_back({.fd = fd, .events = events, .revents = 0});
    }
    if (is_done) return true;
    if (!Poll(waits)) return false;
  }
}

}  // namespace rankrun::fake_nccl

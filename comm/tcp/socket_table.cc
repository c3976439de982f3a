#include "comm/tcp/socket_table.h"

#include <poll.h>

#include "comm/tcp/handshake.h"
#include "comm/tcp/socket.h"

namespace rankrun::comm::tcp {
namespace {

constexpr std::chrono::milliseconds kBetweenChecks{100};

std::string LossText(int socket_fd) {
  int error_number = TakeSocketError(socket_fd);
  return error_number == 0 ? "Connection closed by peer" : ErrorText(error_number);
}

}  // namespace

SocketTable::SocketTable(int ranks, int own_rank, size_t data_streams)
    : own_rank_(own_rank),
      sockets_(static_cast<size_t>(ranks)),
      missing_(static_cast<size_t>(ranks - 1) * (data_streams + 1)) {
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer != own_rank) sockets_[static_cast<size_t>(peer)].data.resize(data_streams);
  }
}

void SocketTable::Put(int peer, uint32_t stream, Fd socket) {
  PeerSockets& sockets = sockets_[static_cast<size_t>(peer)];
  Fd& place = stream == kControlStream ? sockets.control : sockets.data[stream - 1];
  if (!place) missing_ -= 1;
  place = std::move(socket);
}

std::vector<int> SocketTable::Incomplete() const {
  std::vector<int> peers;
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    if (static_cast<int>(peer) == own_rank_) continue;
    bool has_all = static_cast<bool>(sockets_[peer].control);
    for (const Fd& socket : sockets_[peer].data) has_all = has_all && socket;
    if (!has_all) peers.push_back(static_cast<int>(peer));
  }
  return peers;
}

std::optional<SocketTable::Loss> SocketTable::FirstLoss() const {
  std::vector<pollfd> entries;
  std::vector<int> peers;  // of the entries
  auto add = [&](const Fd& socket, size_t peer) {
    if (!socket) return;
    entries.push_back({.fd = socket.get(), .events = POLLRDHUP, .revents = 0});
    peers.push_back(static_cast<int>(peer));
  };
  for (size_t peer = 0; peer < sockets_.size(); ++peer) {
    add(sockets_[peer].control, peer);
    for (const Fd& socket : sockets_[peer].data) add(socket, peer);
  }
  if (poll(entries.data(), entries.size(), 0) <= 0) return std::nullopt;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].revents != 0) return Loss{peers[i], LossText(entries[i].fd)};
  }
  return std::nullopt;
}

std::optional<SocketTable::Loss> LossWatch::Check(TimePoint now) {
  if (now < next_check_) return std::nullopt;
  next_check_ = now + kBetweenChecks;
  auto loss = table_.FirstLoss();
  if (loss && seen_) return seen_;
  seen_ = std::move(loss);
  return std::nullopt;
}

}  // namespace rankrun::comm::tcp

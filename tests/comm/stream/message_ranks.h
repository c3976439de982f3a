#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/stream/control.h"
#include "comm/stream/messages.h"
#include "tests/comm/memory_store.h"
#include "tests/comm/stream/socket_pair.h"

namespace rankrun::comm::stream {

// Messages of one rank over sockets that the test made. Its peers are other
// such ranks, or the test itself, which then writes the frames.
struct MessageRank {
  MessageRank(int rank, std::vector<Fd> sockets)
      : ranks(sockets.size()),
        config{.global_ranks = ranks,
               .group_rank = rank,
               .store = store,
               .key_prefix = "test",
               .network_interface = "",
               .host = "127.0.0.1",
               .timeout = std::chrono::seconds(60)},
        control(Config(), ConnectionsOver(std::move(sockets)), messages),
        messages(config, control, patience) {}

  std::unique_ptr<Transfer> Send(const std::string& text, int to, uint64_t tag = 0) {
    return messages.StartSend({reinterpret_cast<const std::byte*>(text.data()), text.size()}, to,
                              {.tag = tag, .dtype = DType::kUInt8});
  }
  std::unique_ptr<Transfer> Recv(std::string& text, std::optional<int> from, uint64_t tag = 0) {
    return messages.StartRecv({reinterpret_cast<std::byte*>(text.data()), text.size()}, from,
                              {.tag = tag, .dtype = DType::kUInt8});
  }
  // Handles all frames that have arrived.
  void Move() {
    MutexLock lock(control.mutex());
    while (control.Move()) continue;
  }

  std::vector<int> ranks;
  MemoryStore store{std::make_shared<MemoryKeys>()};
  BackendConfig config;
  Patience patience{.polls = 0, .yields = 0};
  Control control;
  Messages messages;

 private:
  static std::vector<std::unique_ptr<Connection>> ConnectionsOver(std::vector<Fd> sockets) {
    std::vector<std::unique_ptr<Connection>> connections;
    for (Fd& socket : sockets) connections.push_back(ConnectionOver(std::move(socket)));
    return connections;
  }
  const BackendConfig& Config() {
    std::iota(ranks.begin(), ranks.end(), 0);
    config.global_ranks = ranks;
    return config;
  }
};

// Rank 0 of a group, and the test's ends of its sockets, by rank.
struct RankAmongSockets {
  explicit RankAmongSockets(int world_size) : ends(static_cast<size_t>(world_size)) {
    std::vector<Fd> sockets(ends.size());
    for (size_t peer = 1; peer < ends.size(); ++peer) {
      SocketPair pair;
      sockets[peer] = std::move(pair.one);
      ends[peer] = std::move(pair.other);
    }
    rank.emplace(0, std::move(sockets));
  }

  std::vector<Fd> ends;
  std::optional<MessageRank> rank;
};

// Ranks 0 and 1, connected with each other.
struct RankPair {
  RankPair() : RankPair(SocketPair()) {}
  explicit RankPair(SocketPair pair)
      : zero(0, Sockets(1, std::move(pair.one))), one(1, Sockets(0, std::move(pair.other))) {}

  static std::vector<Fd> Sockets(size_t peer, Fd socket) {
    std::vector<Fd> sockets(2);
    sockets[peer] = std::move(socket);
    return sockets;
  }

  MessageRank zero;
  MessageRank one;
};

// Moves all transfers until they are over. Returns the error of each, or "ok".
inline std::vector<std::string> Ended(const std::vector<Transfer*>& transfers) {
  auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (size_t over = 0; over < transfers.size();) {
    over = 0;
    for (Transfer* transfer : transfers) over += transfer->Test() ? 1 : 0;
    if (std::chrono::steady_clock::now() < limit) continue;
    ADD_FAILURE() << over << " of " << transfers.size() << " transfers are over after 60 s";
    break;
  }
  std::vector<std::string> texts;
  for (Transfer* transfer : transfers) {
    auto ok = transfer->Wait(std::chrono::milliseconds(1));
    texts.push_back(ok ? "ok" : ok.error().message);
  }
  return texts;
}

}  // namespace rankrun::comm::stream

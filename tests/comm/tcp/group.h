#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "comm/core/backend.h"
#include "comm/tcp/connect.h"
#include "comm/tcp/peer_address.h"
#include "tests/comm/memory_store.h"

namespace rankrun::comm::tcp {

using ConnectResult = Result<std::vector<PeerSockets>>;

// Event for which the ranks of a test, which are threads, wait.
class Turn {
 public:
  void Pass() {
    passed_ = true;
    passed_.notify_all();
  }
  void Await() { passed_.wait(false); }

 private:
  std::atomic<bool> passed_ = false;
};

// Store of a rank that publishes its address, but then waits for `turn` before
// it connects.
class LateStore : public MemoryStore {
 public:
  LateStore(std::shared_ptr<MemoryKeys> keys, Turn& turn)
      : MemoryStore(std::move(keys)), turn_(turn) {}
  Result<std::vector<std::string>> MultiGet(std::span<const std::string> keys,
                                            std::chrono::milliseconds timeout) override {
    turn_.Await();
    return MemoryStore::MultiGet(keys, timeout);
  }

 private:
  Turn& turn_;
};

// Ranks of a group on loopback, each in a separate thread.
class TcpGroup {
 public:
  explicit TcpGroup(int ranks) : ranks_(ranks) {}

  std::function<void(BackendConfig& config)> configure = [](BackendConfig&) {};
  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();

  BackendConfig Config(store::Store& store, int rank) const {
    std::vector<int> members;
    for (int r = 0; r < ranks_; ++r) members.push_back(r);
    BackendConfig config{.global_ranks = std::move(members),
                         .group_rank = rank,
                         .store = store,
                         .key_prefix = "tcp",
                         .network_interface = "",
                         .host = "127.0.0.1",
                         .timeout = std::chrono::seconds(60)};
    configure(config);
    return config;
  }

  ConnectResult Connect(int rank) const {
    MemoryStore store(keys);
    return ConnectAll(Config(store, rank));
  }

  // Returns the results of all ranks.
  std::vector<ConnectResult> ConnectEach() const {
    std::vector<std::optional<ConnectResult>> results(static_cast<size_t>(ranks_));
    std::vector<std::jthread> threads;
    for (int r = 0; r < ranks_; ++r) {
      threads.emplace_back([&, r] { results[static_cast<size_t>(r)] = Connect(r); });
    }
    threads.clear();
    std::vector<ConnectResult> all;
    for (auto& result : results) all.push_back(*std::move(result));
    return all;
  }

  // Waits for the address of a rank.
  PeerAddress AddressOf(int rank) const {
    MemoryStore store(keys);
    auto text = store.Get("tcp/address/" + std::to_string(rank), std::chrono::seconds(60));
    return *DecodePeerAddress(*text);
  }

  int ranks() const { return ranks_; }

 private:
  const int ranks_;
};

// Waits until `bytes` bytes have arrived at a non-blocking socket, or its end.
inline std::string ReadFrom(const Fd& socket, size_t bytes) {
  std::string text(bytes, '\0');
  size_t have = 0;
  while (have < bytes) {
    pollfd entry{.fd = socket.get(), .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, 60'000) != 1) break;
    ssize_t got = recv(socket.get(), text.data() + have, bytes - have, 0);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  return text;
}

inline void SendTo(const Fd& socket, std::string_view text) {
  EXPECT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

// Connects as any program can. The socket is blocking.
inline Fd ConnectTo(const SocketAddress& address) {
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), address.raw(), address.raw_size()), 0);
  return fd;
}

}  // namespace rankrun::comm::tcp

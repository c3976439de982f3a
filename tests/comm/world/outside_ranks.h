#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/backend.h>

#include "base/fd.h"
#include "comm/world/outside_backend.h"
#include "tests/comm/transport/group.h"

// Ranks that are threads of a test, connected by an outside backend of the test.
namespace rankrun::comm {

// How a connection of the test behaves.
struct Behaviour {
  std::function<ssize_t(int fd, const iovec* parts, int count)> send;
  std::function<ssize_t(int fd, const iovec* parts, int count)> receive;
};

inline ssize_t SendNow(int fd, const iovec* parts, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = static_cast<size_t>(count);
  ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent < 0 ? -errno : sent;
}

inline ssize_t ReceiveNow(int fd, const iovec* parts, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = static_cast<size_t>(count);
  ssize_t received = recvmsg(fd, &message, MSG_DONTWAIT);
  return received < 0 ? -errno : received;
}

// A backend whose ranks are threads of the test. It makes socket pairs.
class TestBackend {
 public:
  using Connect = std::function<rankrun_status(
      const rankrun_backend_group& group, rankrun_connection* connections, std::string& reason)>;

  rankrun_backend Description() {
    return {
        .size = sizeof(rankrun_backend),
        .version = RANKRUN_BACKEND_VERSION,
        .name = "test",
        .context = this,
        .connect = &TestBackend::ConnectCalled,
        .send =
            [](void* state, const iovec* parts, int count) {
              auto& end = *static_cast<End*>(state);
              return end.owner->behaviour.send(end.fd.get(), parts, count);
            },
        .receive =
            [](void* state, const iovec* parts, int count) {
              auto& end = *static_cast<End*>(state);
              return end.owner->behaviour.receive(end.fd.get(), parts, count);
            },
        .shut_down = [](void* state) { shutdown(static_cast<End*>(state)->fd.get(), SHUT_RDWR); },
        .close =
            [](void* state) {
              auto* end = static_cast<End*>(state);
              end->owner->open -= 1;
              delete end;
            },
        .open_group = nullptr,
        .takes = nullptr,
        .run = nullptr,
        .close_group = nullptr};
  }

  // Fills this rank's connections.
  void Fill(const rankrun_backend_group& group, rankrun_connection* connections) {
    std::lock_guard lock(mutex_);
    for (int peer = 0; peer < group.world_size; ++peer) {
      for (int index = 0; peer != group.rank && index < 2; ++index) {
        auto* end = new End{this, EndOf(group.rank, peer, index)};
        open += 1;
        connections[2 * peer + index] = {.state = end, .fd = end->fd.get(), .reserved = 0};
      }
    }
  }

  Behaviour behaviour{.send = &SendNow, .receive = &ReceiveNow};
  Connect connect = [this](const rankrun_backend_group& group, rankrun_connection* connections,
                           std::string&) {
    Fill(group, connections);
    return RANKRUN_OK;
  };
  std::atomic<int> open = 0;  // connections that are not closed

 private:
  struct End {
    TestBackend* owner;
    Fd fd;
  };

  static rankrun_status ConnectCalled(void* context, const rankrun_backend_group* group,
                                      rankrun_connection* connections, char* reason,
                                      size_t reason_size) {
    std::string text;
    auto status = static_cast<TestBackend*>(context)->connect(*group, connections, text);
    snprintf(reason, reason_size, "%s", text.c_str());
    return status;
  }

  Fd EndOf(int rank, int peer, int index) {
    std::array<int, 3> key{rank, peer, index};
    if (auto made = ends_.extract(key)) return std::move(made.mapped());
    int pair[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ends_[{peer, rank, index}] = Fd(pair[1]);
    return Fd(pair[0]);
  }

  std::mutex mutex_;
  std::map<std::array<int, 3>, Fd> ends_;  // for ranks that connect later
};

struct OutsideRanks : testing::Test {
  virtual rankrun_backend Description() { return backend.Description(); }
  // Connects each rank and runs `body` on it. Returns its text, or the error.
  std::vector<std::string> OnRanks(
      int ranks, const std::function<std::string(Backend& backend, int rank)>& body) {
    const rankrun_backend description = Description();
    transport::BackendGroup group("test", ranks);
    group.configure = configure;
    std::vector<std::string> texts(static_cast<size_t>(ranks));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] {
        MemoryStore store(group.keys);
        auto made = ConnectOutsideBackend(description, group.Config(store, rank));
        texts[static_cast<size_t>(rank)] =
            made ? body(**made, rank) : "error: " + made.error().message;
      });
    }
    threads.clear();
    EXPECT_EQ(backend.open, 0) << "connections are not closed, or are closed twice";
    return texts;
  }

  std::function<void(BackendConfig&)> configure = [](BackendConfig& config) {
    config.hosts.assign(config.global_ranks.size(), "here");
  };
  TestBackend backend;
};

inline std::string InWords(const Result<void>& result) {
  return result ? "ok" : result.error().message;
}

}  // namespace rankrun::comm

#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/uv/uv_loop.h"
#include "store/server/server.h"

namespace rankrun::store {

inline SocketAddress Loopback(uint16_t port = 0) {
  return *SocketAddress::FromNumeric("127.0.0.1", port);
}

// A store server on 127.0.0.1 with its own loop and thread, so that a test may
// block.
class ServerThread {
 public:
  explicit ServerThread(ServerOptions options = {}) {
    if (options.addresses.empty()) options.addresses = {{Loopback()}};
    auto server = Server::Listen(loop_, std::move(options));
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.Run(); });
  }
  ~ServerThread() {
    OnLoop([this](Server&) {
      server_.reset();
      loop_.Stop();
    });
    thread_.join();
  }

  uint16_t port() const { return port_; }

  // Runs `task` on the loop's thread and waits for it.
  void OnLoop(const std::function<void(Server&)>& task) {
    std::promise<void> done;
    loop_.Post([&] {
      task(*server_);
      done.set_value();
    });
    done.get_future().wait();
  }

  // Returns whether `condition` becomes true on the loop's thread within 10
  // seconds.
  bool Eventually(const std::function<bool(Server&)>& condition) {
    TimePoint deadline = MonotonicClock().Now() + std::chrono::seconds(10);
    bool holds = false;
    while (!holds && MonotonicClock().Now() < deadline) {
      OnLoop([&](Server& server) { holds = condition(server); });
    }
    return holds;
  }

 private:
  Loop loop_;
  std::unique_ptr<Server> server_;
  uint16_t port_ = 0;
  std::thread thread_;
};

}  // namespace rankrun::store

#include "store/server/hosted_server.h"

#include <pthread.h>
#include <unistd.h>

#include <thread>

#include "base/process/start_thread.h"
#include "base/uv/uv_loop.h"

namespace rankrun::store {

// The server must be destroyed before its loop.
struct HostedServer::Running {
  Loop loop;
  std::unique_ptr<Server> server;
  std::thread thread;
};

namespace {

constexpr const char* kThreadName = "rankrun-store";  // shown by top and gdb

}  // namespace

Result<std::unique_ptr<HostedServer>> HostedServer::Start(ServerOptions options) {
  auto running = std::make_unique<Running>();
  auto server = Server::Listen(running->loop, std::move(options));
  if (!server) return std::move(server).error();
  running->server = std::move(*server);
  uint16_t port = running->server->port();
  auto thread = StartThread([loop = &running->loop] {
    pthread_setname_np(pthread_self(), kThreadName);
    loop->Run();
  });
  if (!thread) return std::move(thread).error().In("serve a store");
  running->thread = *std::move(thread);
  return std::unique_ptr<HostedServer>(new HostedServer(std::move(running), port));
}

HostedServer::HostedServer(std::unique_ptr<Running> running, uint16_t port)
    : process_(getpid()), port_(port), running_(std::move(running)) {}

HostedServer::~HostedServer() {
  if (getpid() != process_) {
    // A forked child shares the loop's epoll descriptor with its parent.
    // Removing our sockets from it would remove the parent's, too.
    static_cast<void>(running_.release());
    return;
  }
  running_->loop.Post([running = running_.get()] {
    running->server.reset();
    running->loop.Stop();
  });
  running_->thread.join();
}

}  // namespace rankrun::store

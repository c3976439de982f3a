#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>

#include "base/fd.h"
#include "base/log.h"
#include "tests/store/server/server_thread.h"

namespace rankrun::store {

// A store server on 127.0.0.1 in its own process, so that its memory can be
// measured apart from the test's. Create it before the test has threads.
class ServerProcess {
 public:
  explicit ServerProcess(const ServerOptions& options) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    Fd reading(ends[0]);
    Fd writing(ends[1]);
    pid_ = fork();
    EXPECT_GE(pid_, 0);
    if (pid_ == 0) Serve(options, writing.get());
    writing.Reset();
    EXPECT_EQ(read(reading.get(), &port_, sizeof port_), ssize_t{sizeof port_});
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess() {
    if (pid_ <= 0) return;
    int status = 0;
    bool ended = waitpid(pid_, &status, WNOHANG) != 0;
    EXPECT_FALSE(ended) << "the server has exited early, with wait status " << status;
    if (ended) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  SocketAddress address() const { return Loopback(port_); }

  // Peak memory of the process; 0 if unknown.
  size_t PeakBytes() const {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
    }
    return 0;
  }

 private:
  [[noreturn]] static void Serve(ServerOptions options, int port_to) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::signal(SIGPIPE, SIG_IGN);  // as every host of a server must
    SetLogSink([](std::string_view) {});
    Loop loop;
    options.addresses = {{Loopback()}};
    auto server = Server::Listen(loop, std::move(options));
    if (!server) _exit(1);
    uint16_t port = (*server)->port();
    if (write(port_to, &port, sizeof port) != ssize_t{sizeof port}) _exit(1);
    loop.Run();
    _exit(0);
  }

  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

// Returns whether this process and its children may open `count` descriptors.
inline bool MayHaveDescriptors(rlim_t count) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max < count) return false;
  limit.rlim_cur = std::max(limit.rlim_cur, count);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

}  // namespace rankrun::store

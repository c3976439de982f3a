#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "tests/store/server/server_thread.h"

namespace rankrun::comm {

// Time after which most ranks have the error for a death.
#ifdef RANKRUN_SANITIZED
constexpr int64_t kPromptMs = 500;
#else
constexpr int64_t kPromptMs = 50;
#endif
// Time after which all ranks have it, even on a loaded machine. Far below the
// time-outs of tests in which no rank may time out.
constexpr int64_t kLoadedMs = 10'000;

// Runs `rank` for each of `world_size` ranks, each in a separate thread.
inline void RunRanks(int world_size, const std::function<void(int global_rank)>& rank) {
  std::vector<std::jthread> threads;
  for (int r = 0; r < world_size; ++r) threads.emplace_back([&rank, r] { rank(r); });
}

// Value that this process shares with the processes that it forks.
template <typename T>
class InSharedMemory {
 public:
  InSharedMemory()
      : value_(new (mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                         0)) T{}) {}
  InSharedMemory(const InSharedMemory&) = delete;
  InSharedMemory& operator=(const InSharedMemory&) = delete;
  ~InSharedMemory() { munmap(value_, sizeof(T)); }

  T& operator*() const { return *value_; }
  T* operator->() const { return value_; }

 private:
  T* const value_;
};

// Forked process that runs `body` and passes its text to the parent. Forking is
// safe, because the test process has no threads. A check that fails in it fails the test.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<std::string()>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    read_end_ = Fd(ends[0]);
    const bool had_failure = testing::Test::HasFailure();
    pid_ = fork();
    if (pid_ == 0) {
      std::string text = body();
      if (write(ends[1], text.data(), text.size()) < 0) _exit(1);
      _exit(testing::Test::HasFailure() && !had_failure ? kFailedCheck : 0);
    }
    close(ends[1]);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess() {
    if (pid_ > 0) {
      Kill();
      waitpid(pid_, nullptr, 0);
    }
  }

  void Kill() { Signal(SIGKILL); }
  void Signal(int number) { kill(pid_, number); }

  // Waits for the end of the process. Returns the text of `body`.
  std::string Text() {
    std::string text;
    char part[4096];
    for (ssize_t got; (got = read(read_end_.get(), part, sizeof part)) > 0;) {
      text.append(part, static_cast<size_t>(got));
    }
    EXPECT_EQ(waitpid(std::exchange(pid_, -1), &status_, 0) > 0, true);
    EXPECT_FALSE(WIFEXITED(status_) && WEXITSTATUS(status_) == kFailedCheck)
        << "a check in a child process has failed";
    return text;
  }
  int status() const { return status_; }  // valid after Text()
  pid_t pid() const { return pid_; }      // valid before Text()

 private:
  static constexpr int kFailedCheck = 97;

  Fd read_end_;
  pid_t pid_ = -1;
  int status_ = 0;
};

// Real store server in a separate process.
class ServerProcess {
 public:
  ServerProcess() : port_pipe_(MakePipe()), process_([this] { return Serve(); }) {
    EXPECT_EQ(read(port_pipe_[0].get(), &port_, sizeof port_), ssize_t{sizeof port_});
  }
  uint16_t port() const { return port_; }
  void Kill() { process_.Kill(); }
  void Stop() { process_.Signal(SIGSTOP); }

 private:
  static std::vector<Fd> MakePipe() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    std::vector<Fd> fds;
    fds.emplace_back(ends[0]);
    fds.emplace_back(ends[1]);
    return fds;
  }

  std::string Serve() {
    store::ServerThread server;
    uint16_t port = server.port();
    if (write(port_pipe_[1].get(), &port, sizeof port) < 0) _exit(1);
    for (;;) pause();  // until killed
  }

  std::vector<Fd> port_pipe_;
  ChildProcess process_;
  uint16_t port_ = 0;
};

}  // namespace rankrun::comm

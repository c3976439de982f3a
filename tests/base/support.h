#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/process/spawn.h"

// Helpers for the tests of several folders.
namespace rankrun::test {

constexpr std::chrono::seconds kLong{20};  // longer than any step of a test that passes

// A folder of the test's own; the destructor removes it with its content.
class TempFolder {
 public:
  TempFolder() {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "mkdtemp " << path_;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file (and the folders above it); returns its path.
  std::string Write(const std::string& name, std::string_view content, mode_t mode = 0644) const {
    std::string path = Path(name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << content;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

 private:
  std::string path_ = ::testing::TempDir() + "rankrun-test-XXXXXX";
};

// Sets a variable of the environment (null: unsets it); the destructor restores
// it.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    Set(value);
  }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;
  ~ScopedVariable() { Set(before_ ? before_->c_str() : nullptr); }

 private:
  void Set(const char* value) {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

struct Pipe {
  Fd read_end;
  Fd write_end;
};

inline Pipe MakePipe(int flags = O_CLOEXEC) {
  int ends[2];
  EXPECT_EQ(pipe2(ends, flags), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

inline bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

// Reads until the end of the stream.
inline std::string ReadToEnd(int fd) {
  std::string text;
  char buffer[65536];
  for (;;) {
    ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(buffer, static_cast<size_t>(count));
  }
}

// Fills a pipe completely. Returns the number of bytes written.
inline size_t FillPipe(int write_end) {
  int flags = fcntl(write_end, F_GETFL);
  fcntl(write_end, F_SETFL, flags | O_NONBLOCK);
  size_t filled = 0;
  std::string zeros(4096, '0');
  for (size_t piece = zeros.size(); piece > 0;) {
    ssize_t count = write(write_end, zeros.data(), piece);
    if (count > 0) {
      filled += static_cast<size_t>(count);
    } else {
      piece /= 2;
    }
  }
  fcntl(write_end, F_SETFL, flags);
  return filled;
}

inline std::string ReadWholeFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns whether `condition` becomes true within `timeout`; checks it each
// millisecond.
inline bool WaitFor(const std::function<bool()>& condition,
                    std::chrono::milliseconds timeout = kLong) {
  TimePoint deadline = std::chrono::steady_clock::now() + timeout;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// Waits for the end of a child and reaps it.
inline ProcessExit WaitForExit(pid_t pid) {
  std::optional<ProcessExit> exit;
  EXPECT_TRUE(WaitFor([&] {
    exit = ReapByPid(pid);
    return exit.has_value();
  })) << "process "
      << pid << " does not end";
  return exit.value_or(ProcessExit{});
}

// Forks a process that runs `body` and exits with what it returns.
inline pid_t Fork(const std::function<int()>& body) {
  pid_t pid = fork();
  if (pid == 0) _exit(body());
  EXPECT_GT(pid, 0);
  return pid;
}

// Returns whether a process with this pid exists and is not a zombie.
inline bool IsRunning(pid_t pid) {
  std::string stat = ReadWholeFile("/proc/" + std::to_string(pid) + "/stat");
  size_t name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X';
}

inline bool HasNoChild() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

// Returns the threads of this process with that name, as folders in /proc.
inline std::vector<std::string> ThreadsNamed(const std::string& name) {
  std::vector<std::string> folders;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string line;
    if (std::getline(comm, line) && line == name) folders.push_back(task.path());
  }
  return folders;
}

}  // namespace rankrun::test

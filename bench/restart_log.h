#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace rankrun::bench {

constexpr int kMaxAttempts = 256;
constexpr int kMaxRanks = 16;

// Times recorded by the workers of all attempts, in a file that all of them
// map. Times are CLOCK_MONOTONIC in nanoseconds, 0 for "did not happen".
struct RestartLog {
  struct Attempt {
    std::atomic<int> running;                  // workers that have reached main()
    std::atomic<int64_t> in_main[kMaxRanks];   // first line of main()
    std::atomic<int64_t> died;                 // just before the SIGKILL
    std::atomic<int64_t> got_term[kMaxRanks];  // in the SIGTERM handler, just before the exit
  };
  Attempt attempts[kMaxAttempts];
};

inline int64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

inline RestartLog* OpenLog(const char* path, int flags) {
  int fd = open(path, flags, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(RestartLog)) != 0) return nullptr;
  void* address = mmap(nullptr, sizeof(RestartLog), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return address == MAP_FAILED ? nullptr : static_cast<RestartLog*>(address);
}

}  // namespace rankrun::bench

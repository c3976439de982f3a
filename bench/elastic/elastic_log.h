#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "bench/restart_log.h"

namespace rankrun::bench {

constexpr int kMaxEntries = 1024;

// Times recorded by the workers of all nodes, in a file that all of them map.
struct ElasticLog {
  enum Kind { kInMain, kGotTerm };
  struct Entry {
    std::atomic<int64_t> at;  // CLOCK_MONOTONIC in nanoseconds; 0: not written yet
    int kind;
    int node;  // a letter
    pid_t pid;
  };
  std::atomic<bool> is_over;  // tells the workers to exit
  std::atomic<int> overlaps;  // number of workers that began while one of an earlier attempt ran
  std::atomic<int> count;
  Entry entries[kMaxEntries];

  void Note(Kind kind, int node, int64_t at) {
    int index = count++;
    if (index >= kMaxEntries) _exit(3);
    Entry& entry = entries[index];
    entry.kind = kind;
    entry.node = node;
    entry.pid = getpid();
    entry.at = at;
  }
};

inline ElasticLog* OpenElasticLog(const char* path, int flags) {
  int fd = open(path, flags, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(ElasticLog)) != 0) return nullptr;
  void* address = mmap(nullptr, sizeof(ElasticLog), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return address == MAP_FAILED ? nullptr : static_cast<ElasticLog*>(address);
}

}  // namespace rankrun::bench

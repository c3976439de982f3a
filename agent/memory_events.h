#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rankrun::agent {

// What the kernel counts of processes that it killed for want of memory.
struct MemoryEvents {
  uint64_t oom_kills = 0;
  bool of_cgroup = false;         // else of the whole machine
  std::optional<uint64_t> limit;  // bytes that the cgroup, and those above it, may use
};

// Of the control group of this process (version 2 or 1), else of the machine.
// Nothing if the kernel shows neither. Reads the kernel's own files below
// `root`, which do not block.
// Source: Linux's admin-guide/cgroup-v2.rst, memory.events and memory.max.
std::optional<MemoryEvents> ReadMemoryEvents(const std::string& root = "");

// How full a file system is.
struct Space {
  uint64_t bytes = 0;
  uint64_t available = 0;
};

// Nothing if `path` is none.
std::optional<Space> ReadSpace(const std::string& path);

}  // namespace rankrun::agent

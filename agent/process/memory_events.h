#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace rankrun::agent {

// Processes that the kernel killed for lack of memory.
struct MemoryEvents {
  uint64_t oom_kills = 0;
  bool of_cgroup = false;         // false: of the whole machine
  std::optional<uint64_t> limit;  // bytes; lowest limit of the cgroup and its ancestors
};

// Reads the events of this process's cgroup (version 2 or 1), or else of the
// machine. Returns nothing if the kernel shows neither. Reads only kernel files
// below `root`, which do not block.
// Source: Linux's admin-guide/cgroup-v2.rst, memory.events and memory.max.
std::optional<MemoryEvents> ReadMemoryEvents(const std::string& root = "");

// Size and free space of a file system, in bytes.
struct Space {
  uint64_t bytes = 0;
  uint64_t available = 0;
};

// Returns nothing if `path` does not exist.
std::optional<Space> ReadSpace(const std::string& path);

}  // namespace rankrun::agent

#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/net/socket_address.h"
#include "base/result.h"

namespace rankrun::bench {

// The measured server.
struct Target {
  SocketAddress address;
  pid_t pid = 0;  // 0: its CPU time and memory are not measured
  std::chrono::milliseconds patience{10'000};

  // Returns the CPU time of its process, all threads together; 0 without a pid.
  // Errors: kSystem, when there is no such process.
  Result<int64_t> CpuNanoseconds() const;
  Result<int64_t> ResidentKiB() const;
};

// Returns a name that no earlier run has used, because a server may serve
// several runs.
std::string FreshName(const std::string& prefix);

}  // namespace rankrun::bench

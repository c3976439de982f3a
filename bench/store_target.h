#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/socket_address.h"

namespace rankrun::bench {

// The server, and how it is measured.
struct Target {
  SocketAddress address;
  pid_t pid = 0;  // 0: its CPU time and memory are not measured
  std::chrono::milliseconds patience{10'000};

  // What its process, all threads together, has used so far; 0 without a pid.
  // Errors: kSystem, when there is no such process.
  Result<int64_t> CpuNanoseconds() const;
  Result<int64_t> ResidentKiB() const;
};

// A name that no run has used before: a server may serve several.
std::string FreshName(const std::string& prefix);

}  // namespace rankrun::bench

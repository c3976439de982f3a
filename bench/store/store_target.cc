#include "bench/store/store_target.h"

#include <time.h>

#include <cstring>
#include <fstream>

namespace rankrun::bench {

Result<int64_t> Target::CpuNanoseconds() const {
  if (pid == 0) return 0;
  // The scheduler's figure is exact up to this instant; /proc shows that of the
  // last tick.
  clockid_t clock{};
  timespec used{};
  int failed = clock_getcpuclockid(pid, &clock);
  if (failed == 0 && clock_gettime(clock, &used) != 0) failed = errno;
  if (failed != 0) {
    return Error{ErrorCode::kSystem,
                 "read the CPU time of process " + std::to_string(pid) + ": " + strerror(failed)};
  }
  return int64_t{1'000'000'000} * used.tv_sec + used.tv_nsec;
}

Result<int64_t> Target::ResidentKiB() const {
  if (pid == 0) return 0;
  std::string path = "/proc/" + std::to_string(pid) + "/status";
  std::ifstream status(path);
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6));
  }
  return Error{ErrorCode::kSystem, "read the memory of a process: there is no VmRSS in " + path};
}

std::string FreshName(const std::string& prefix) {
  return prefix + std::to_string(std::chrono::system_clock::now().time_since_epoch().count());
}

}  // namespace rankrun::bench

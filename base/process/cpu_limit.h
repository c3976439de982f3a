#pragma once

#include <optional>
#include <string>

namespace rankrun {

// Returns how many CPUs the control groups of this process let it use at once,
// rounded up: the smallest quota of its own group and of all above it that are
// visible here. Returns nothing without a quota. `root` stands for "/".
// Source: kernel.org/doc/html/latest/admin-guide/cgroup-v2.html, "cpu.max", and
// scheduler/sched-bwc.html for version 1.
std::optional<int> ReadCpuLimit(const std::string& root = "");

}  // namespace rankrun

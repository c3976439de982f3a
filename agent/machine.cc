#include "agent/machine.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "agent/descendants.h"

namespace rankrun::agent {

int WorkersOomScore() {
  constexpr int kRaise = 500;
  constexpr int kHighest = 1000;
  return std::min(kHighest, std::atoi(ReadOfProcess(getpid(), "oom_score_adj").c_str()) + kRaise);
}

int CoresInCpuset() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::thread::hardware_concurrency());  // more than fit into the set
}

}  // namespace rankrun::agent

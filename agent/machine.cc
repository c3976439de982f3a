#include "agent/machine.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "agent/descendants.h"

namespace rankrun::agent {

int WorkersOomScore() {
  constexpr int kRaise = 500;
  constexpr int kHighest = 1000;
  return std::min(kHighest, std::atoi(ReadOfProcess(getpid(), "oom_score_adj").c_str()) + kRaise);
}

}  // namespace rankrun::agent

#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace rankrun {

void CheckFailed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "rankrun: internal error at %s:%d: %s (%s)\n", file, line, why, condition);
  std::abort();
}

}  // namespace rankrun

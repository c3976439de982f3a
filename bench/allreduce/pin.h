#pragma once

#include <sched.h>

namespace rankrun::bench {

// Pins this process to the core of this index, among those that it may use. Returns -1 and sets
// errno after an error.
inline int PinToCore(int index) {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return -1;
  int left = index % CPU_COUNT(&allowed);
  int core = 0;
  while (!CPU_ISSET(core, &allowed) || left-- > 0) ++core;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(core, &own);
  return sched_setaffinity(0, sizeof(own), &own);
}

}  // namespace rankrun::bench

#include "tests/cluster/virtual_time.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

namespace rankrun::test {
namespace {

constinit TimePoint g_now{std::chrono::hours(1)};

}  // namespace

TimePoint VirtualNow() { return g_now; }

void MoveVirtualTime(TimePoint to) {
  RANKRUN_CHECK(to >= g_now, "time does not go back");
  g_now = to;
}

}  // namespace rankrun::test

// Takes the place of the function of the C library.
extern "C" [[gnu::visibility("default")]] int clock_gettime(clockid_t clock,
                                                            struct timespec* time) noexcept {
  if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE) {
    return static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  }
  constexpr long kNanoseconds = 1'000'000'000;
  const long passed = rankrun::test::VirtualNow().time_since_epoch().count();
  time->tv_sec = passed / kNanoseconds;
  time->tv_nsec = passed % kNanoseconds;
  return 0;
}

#pragma once

#include "base/clock.h"

// The monotonic clock of this program, which stands still until a test moves it: also for libuv
// and the standard library. Other clocks are the system's.
namespace rankrun::test {

TimePoint VirtualNow();

// `to`: not before VirtualNow().
void MoveVirtualTime(TimePoint to);

}  // namespace rankrun::test

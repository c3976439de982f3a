#pragma once

#include "base/uv/uv_loop.h"
#include "tests/base/support.h"

namespace rankrun::test {

// Runs every callback of the loop that is ready now. libuv handles all ready
// descriptors in one turn, and the second task runs in a later turn than the
// first one. A test that something does not happen makes the trigger ready,
// calls this, and then checks.
inline void RunReadyCallbacks(Loop& loop) {
  bool is_done = false;
  loop.Post([&] { loop.Post([&] { is_done = true; }); });
  EXPECT_TRUE(loop.RunUntil([&] { return is_done; }, kLong));
}

}  // namespace rankrun::test

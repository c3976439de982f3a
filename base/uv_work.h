#pragma once

#include <functional>

namespace rankrun {

class Loop;

// Runs `work` on libuv's thread pool, then `done` on the loop's thread. For
// what a file system or a stuck process can block. `done` runs exactly once
// if the loop keeps running; what it captures must live that long.
void RunInPool(Loop& loop, std::function<void()> work, std::function<void()> done);

}  // namespace rankrun

#pragma once

#include <functional>

namespace rankrun {

class Loop;

// Runs `work` on libuv's thread pool, then `done` on the loop's thread. For
// what a file system or a stuck process can block. `done` runs exactly once
// if the loop keeps running; what it captures must live that long.
void RunInPool(Loop& loop, std::function<void()> work, std::function<void()> done);

// How many jobs, and writes of Output, may be stuck before the next one waits;
// libuv's default is 4, or what the user has set for programs of his own. Before
// the first of them, while there is one thread; changes our environment.
void SetPoolThreads(int count);

}  // namespace rankrun

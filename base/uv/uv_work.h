#pragma once

#include <functional>

namespace rankrun {

class Loop;

// Runs `work` on libuv's thread pool, then `done` on the loop's thread. For
// work that a file system or a stuck process can block. `done` runs exactly
// once if the loop keeps running; its captures must live that long.
void RunInPool(Loop& loop, std::function<void()> work, std::function<void()> done);

// Sets the number of pool jobs and Output writes that may hang before the next
// one waits. libuv's default is 4, or the number that the user has set for
// other programs. Call this before the first job, while there is one thread,
// because it changes the environment.
void SetPoolThreads(int count);

}  // namespace rankrun

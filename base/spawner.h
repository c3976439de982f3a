#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/spawn.h"

namespace rankrun {

class Loop;

// Starts processes on threads of its own, so that an exec that hangs in a file
// system holds up nothing else: on one, and on a few if many wait, since a
// start holds its thread until the exec. These are the parents that PDEATHSIG
// means, so they live as long as this object.
// Thread: loop.  Lifetime: longer than the processes it started; it kills those
// that are left. The destructor waits for a start that is under way; its
// `on_started` is not called any more.
class Spawner {
 public:
  using OnStarted = std::function<void(Result<SpawnedProcess>)>;

  explicit Spawner(Loop& loop);
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  ~Spawner();

  // Starts `spec`, not before all that was asked for before is begun, then calls
  // `on_started` on the loop. Descriptors of `spec` stay open until then.
  // Errors: those of SpawnProcess; kExhausted if there is no thread and none
  // can be made.
  void Start(SpawnSpec spec, OnStarted on_started);

  // Forgets what has not been started yet; its `on_started` is never called.
  void Abandon();

  // Blocks until no start waits or is under way, or for `patience`; whether
  // none is. A start that is under way may still make a process.
  bool AwaitIdle(std::chrono::milliseconds patience);

  // Starts whose `on_started` has not been called. While there are any, a
  // child of this process may not be known by its number yet.
  int pending() const { return *pending_; }

 private:
  struct Job {
    SpawnSpec spec;
    OnStarted on_started;
  };
  bool AddThread();                                        // false: the system has none left
  void RunThread(const std::optional<SpawnSlots>& slots);  // without: of each start's own
  void Tell(Result<SpawnedProcess> result, OnStarted on_started);

  Loop& loop_;
  // Watched by the results on their way through the loop, which may find this
  // object gone. Touched on the loop only.
  std::shared_ptr<int> pending_ = std::make_shared<int>(0);
  uint64_t changed_signals_ = 0;  // of the starts that are pending
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable done_;  // a start, whatever became of it
  std::deque<Job> jobs_;          // guarded by mutex_
  int under_way_ = 0;             // guarded by mutex_
  bool ending_ = false;           // guarded by mutex_
  const size_t most_threads_;
  std::vector<std::thread> threads_;
};

}  // namespace rankrun

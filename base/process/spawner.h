#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/process/spawn.h"

namespace rankrun {

class Loop;

// Starts processes on threads of its own, so that an exec that hangs in a file
// system blocks nothing else. Uses one thread, and a few if many starts wait,
// because a start holds its thread until the exec. PDEATHSIG fires when such a
// thread ends, so the threads live as long as this object.
// Thread: loop.  Lifetime: longer than the processes it started; it kills those
// that are left. The destructor waits for a start in progress and does not call
// its `on_started`.
class Spawner {
 public:
  using OnStarted = std::function<void(Result<SpawnedProcess>)>;
  // Starts a child of this process in another way than SpawnProcess; nothing: it cannot. Blocks.
  using OtherWay = std::function<std::optional<Result<SpawnedProcess>>(const SpawnSpec&)>;

  explicit Spawner(Loop& loop);
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  ~Spawner();

  // Starts `spec` after all earlier starts have begun, then calls `on_started`
  // on the loop. Descriptors of `spec` must stay open until then. Tries `other_way` first, on the
  // starting thread.
  // Errors: those of SpawnProcess; kExhausted if there is no thread and none
  // can be created.
  void Start(SpawnSpec spec, OnStarted on_started, OtherWay other_way = {});

  // Drops all starts that have not begun; their `on_started` is never called.
  void Abandon();

  // Blocks until no start waits or is in progress, for `patience` at most.
  // Returns whether none is left. A start in progress may still create a
  // process.
  bool AwaitIdle(std::chrono::milliseconds patience);

  // Number of starts whose `on_started` has not been called. While it is not 0,
  // this process may have a child whose pid is still unknown.
  int pending() const { return *pending_; }

 private:
  struct Job {
    SpawnSpec spec;
    OnStarted on_started;
    OtherWay other_way;  // may be empty
  };
  bool AddThread();                                        // false: the system allows no more
  void RunThread(const std::optional<SpawnSlots>& slots);  // empty: each start opens its own
  bool is_idle() const REQUIRES(mutex_) { return jobs_.empty() && under_way_ == 0; }
  void DeliverResult(Result<SpawnedProcess> result, OnStarted on_started);

  Loop& loop_;
  // Results on their way through the loop hold a weak pointer, because this
  // object may be gone when they arrive. Touched only on the loop.
  std::shared_ptr<int> pending_ = std::make_shared<int>(0);
  uint64_t changed_signals_ = 0;  // for the pending starts
  Mutex mutex_;
  CondVar changed_;
  CondVar done_;  // a start has succeeded or failed
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
  int under_way_ GUARDED_BY(mutex_) = 0;
  bool ending_ GUARDED_BY(mutex_) = false;
  const size_t max_threads_;
  std::vector<std::thread> threads_;
};

}  // namespace rankrun

#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "base/spawn.h"

namespace rankrun {

class Loop;

// Starts processes on a thread of its own, so that an exec that hangs in a
// file system holds up nothing else. That thread is the parent that their
// PDEATHSIG means, so it lives as long as this object.
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

  // Starts `spec` after all that was asked for before, then calls `on_started`
  // on the loop. Descriptors of `spec` stay open until then.
  void Start(SpawnSpec spec, OnStarted on_started);

  // Forgets what has not been started yet; its `on_started` is never called.
  void Abandon();

  // Starts whose `on_started` has not been called. While there are any, a
  // child of this process may not be known by its number yet.
  int pending() const { return *pending_; }

 private:
  struct Job {
    SpawnSpec spec;
    OnStarted on_started;
  };
  void RunThread();

  Loop& loop_;
  // Watched by the results on their way through the loop, which may find this
  // object gone. Touched on the loop only.
  std::shared_ptr<int> pending_ = std::make_shared<int>(0);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // guarded by mutex_
  bool ending_ = false;   // guarded by mutex_
  std::thread thread_;
};

}  // namespace rankrun

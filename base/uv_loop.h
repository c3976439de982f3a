#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.h"

struct uv_loop_s;

namespace rankrun {

class Wakeup;

// An event loop of libuv. Handles (Timer, Poll, Listener, Stream, Wakeup,
// Signal) take it by reference and must be gone before it.
// Thread: the one that calls Run, from the first Run on; Post: any.
// Lifetime: longer than every handle on it; the destructor checks that.
class Loop {
 public:
  Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop();

  // Runs callbacks until Stop.
  void Run();

  // Makes Run return once the callbacks of this turn are over.
  void Stop();

  // Runs callbacks until `done` holds or `timeout` has passed; returns what
  // `done` said last. For tests and for short programs.
  bool RunUntil(const std::function<bool()>& done, std::chrono::milliseconds timeout);

  // Runs `task` on the loop's thread, soon. Thread: any. Tasks posted after
  // the last turn of the loop are destroyed unrun.
  void Post(std::function<void()> task);

  // Whether this is the thread that runs the loop; and a check that it is.
  bool IsOnLoop() const { return thread_.load() == std::this_thread::get_id(); }
  void AssertOnLoop() const;

  uv_loop_s* raw() { return loop_.get(); }

 private:
  struct Deleter {
    void operator()(uv_loop_s* loop) const;
  };
  void RunPosted();

  std::unique_ptr<uv_loop_s, Deleter> loop_;
  std::atomic<std::thread::id> thread_{};
  bool stopped_ = false;
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // guarded by mutex_
  std::unique_ptr<Wakeup> wakeup_;
};

}  // namespace rankrun

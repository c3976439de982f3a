#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"

struct uv_loop_s;

namespace rankrun {

class Wakeup;

// A libuv event loop. Handles (Timer, Poll, Listener, Stream, Wakeup, Signal)
// take it by reference and must end before it.
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

  // Makes Run return after the callbacks of this turn.
  void Stop();

  // Runs callbacks until `done` returns true or `timeout` has passed. Returns
  // the last result of `done`. For tests and short programs.
  bool RunUntil(const std::function<bool()>& done, std::chrono::milliseconds timeout);

  // Runs `task` on the loop's thread soon. Thread: any. Tasks posted after the
  // loop's last turn are destroyed without running.
  void Post(std::function<void()> task);

  // Return, or check, whether this is the thread that runs the loop.
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
  Mutex mutex_;
  std::vector<std::function<void()>> posted_ GUARDED_BY(mutex_);
  std::unique_ptr<Wakeup> wakeup_;
};

}  // namespace rankrun

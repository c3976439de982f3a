#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/result.h"

namespace rankrun::comm {

// A thread that calls `progress` while there is something to move on. Started
// by the first Wake.
// Thread: any.
class Mover {
 public:
  // `progress` does a little, waits a little at most, and says whether there is
  // more to do.
  explicit Mover(std::function<bool()> progress) : progress_(std::move(progress)) {}
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  ~Mover() { Stop(); }

  // There is something to move on. Error: kExhausted, there is no thread.
  Result<void> Wake();
  // Ends the thread, whatever there is.
  void Stop();

 private:
  void Run();

  const std::function<bool()> progress_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  bool awake_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace rankrun::comm

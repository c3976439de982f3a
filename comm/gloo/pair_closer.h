#pragma once

#include <gloo/context.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/result.h"
#include "comm/gloo/wake_event.h"

namespace rankrun::comm::gloo {

// Thread that closes all pairs of a context when `is_over` returns true. A pair
// that waits for its peer can only be interrupted by closing it.
// Thread: one at a time.  Lifetime: `context` outlives it.
class PairCloser {
 public:
  // `is_over` is called in the thread every few milliseconds.
  PairCloser(::gloo::Context& context, std::function<bool()> is_over);
  PairCloser(const PairCloser&) = delete;
  PairCloser& operator=(const PairCloser&) = delete;
  ~PairCloser();

  // Starts the thread. Error: kExhausted if the system has no thread left.
  Result<void> Start();

  bool closes() const { return closes_; }

  // Ends the thread. Returns whether it has closed the pairs.
  bool Stop();

 private:
  void Watch();

  ::gloo::Context& context_;
  const std::function<bool()> is_over_;
  std::atomic<bool> closes_ = false;
  std::atomic<bool> ends_ = false;
  WakeEvent wake_event_;
  std::thread thread_;
};

}  // namespace rankrun::comm::gloo

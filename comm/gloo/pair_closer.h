#pragma once

#include <gloo/context.h>

#include <atomic>
#include <functional>
#include <thread>

#include "base/result.h"
#include "comm/gloo/wakeup.h"

namespace rankrun::comm {

// Closes all pairs of a context, in a thread of its own, once nobody is to be
// waited for any more: a pair that waits for its peer looks at nothing else.
// Thread: one at a time.  Lifetime: `context` outlives it.
class PairCloser {
 public:
  // `is_over` is called in the thread every few milliseconds.
  PairCloser(::gloo::Context& context, std::function<bool()> is_over);
  PairCloser(const PairCloser&) = delete;
  PairCloser& operator=(const PairCloser&) = delete;
  ~PairCloser();

  // Starts the thread. Error: kExhausted, there is none to be had.
  Result<void> Start();

  bool closes() const { return closes_; }

  // Ends the thread. Returns whether it has closed them.
  bool Stop();

 private:
  void Watch();

  ::gloo::Context& context_;
  const std::function<bool()> is_over_;
  std::atomic<bool> closes_ = false;
  std::atomic<bool> ends_ = false;
  Wakeup wakeup_;
  std::thread thread_;
};

}  // namespace rankrun::comm

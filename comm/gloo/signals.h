#pragma once

#include <signal.h>

namespace rankrun::comm {

// While it lives, no signal is delivered to this thread. Threads started
// meanwhile inherit that for good: the program's handlers are not for them.
class WithoutSignals {
 public:
  WithoutSignals();
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals();

 private:
  sigset_t before_;
};

// While it lives, this thread gets no SIGPIPE; nor later, for what it has
// written meanwhile. Gloo writes to connections that the peer may have closed
// without MSG_NOSIGNAL, and how the program handles SIGPIPE is not ours to
// change.
class WithoutSigpipe {
 public:
  WithoutSigpipe();
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;
  ~WithoutSigpipe();

 private:
  sigset_t sigpipe_;
  sigset_t before_;
  bool was_pending_;
};

}  // namespace rankrun::comm

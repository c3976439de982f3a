#pragma once

#include <signal.h>

namespace rankrun::comm {

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

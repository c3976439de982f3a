#pragma once

#include <signal.h>

namespace rankrun::comm::gloo {

// Scope in which writes of this thread raise no SIGPIPE, not even after its
// end. Gloo writes without MSG_NOSIGNAL to connections that the peer may have
// closed, and the library must not change the program's SIGPIPE handler.
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

}  // namespace rankrun::comm::gloo

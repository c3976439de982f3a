#include "comm/gloo/without_sigpipe.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

namespace rankrun::comm::gloo {

WithoutSigpipe::WithoutSigpipe() {
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) != 0;
  sigemptyset(&sigpipe_);
  sigaddset(&sigpipe_, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
}

WithoutSigpipe::~WithoutSigpipe() {
  // Removes a SIGPIPE that this thread's own writes have raised before it is
  // delivered.
  timespec now{};
  while (!was_pending_ && sigtimedwait(&sigpipe_, nullptr, &now) == -1 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace rankrun::comm::gloo

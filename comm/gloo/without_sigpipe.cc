#include "comm/gloo/without_sigpipe.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

namespace rankrun::comm {

WithoutSigpipe::WithoutSigpipe() {
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, SIGPIPE) != 0;
  sigemptyset(&sigpipe_);
  sigaddset(&sigpipe_, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &sigpipe_, &before_);
}

WithoutSigpipe::~WithoutSigpipe() {
  // Takes back what our own writes have raised, before it can be delivered.
  const timespec now{};
  while (!was_pending_ && sigtimedwait(&sigpipe_, nullptr, &now) == -1 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace rankrun::comm

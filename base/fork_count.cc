#include "base/fork_count.h"

#include <pthread.h>

namespace rankrun {

void CountForks() {
  static const int failed = pthread_atfork(nullptr, nullptr, [] { internal::forks.fetch_add(1); });
  static_cast<void>(failed);  // out of memory: forks are not noticed
}

}  // namespace rankrun

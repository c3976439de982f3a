#include "base/process/check_threads.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace rankrun {

Result<void> CheckThreads() {
  const bool is_forbidden = syscall(SYS_clone3, nullptr, 0) != 0 && errno == EPERM;
  if (!is_forbidden) return {};
  pthread_t thread;
  auto nothing = [](void* argument) { return argument; };
  if (pthread_create(&thread, nullptr, nothing, nullptr) == 0) {
    pthread_join(thread, nullptr);
    return {};
  }
  return Error{ErrorCode::kSystem,
               "no thread can be started: the sandbox answers the system call clone3 (Linux 5.3) "
               "with EPERM, want ENOSYS; Docker does so as of 20.10.10, or with --security-opt "
               "seccomp=unconfined"};
}

}  // namespace rankrun

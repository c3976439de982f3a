#include "comm/shm/futex.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>

namespace rankrun::comm::shm {
namespace {

int64_t Membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

timespec ToTimespec(Duration duration) {
  auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
  return timespec{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
}

}  // namespace

bool RegisterForFences() { return Membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0; }

void PassFence() { Membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED); }

void FutexWait(const uint32_t* word, uint32_t seen, Duration limit) {
  timespec time = ToTimespec(limit);
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, nullptr, 0);
}

void FutexWakeAll(const uint32_t* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace rankrun::comm::shm

// A process that waits in functions of its own.
// Usage: stacked lock | read FILE | threads COUNT | orphaned
// Prints "up" before it waits.

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

pthread_mutex_t own_mutex = PTHREAD_MUTEX_INITIALIZER;

void SayUp() {
  std::puts("up");
  std::fflush(stdout);
}

}  // namespace

// Global, so that the functions have symbols; the assembly keeps them from being inlined or
// left by a jump.
__attribute__((noinline)) void LockTwice() {
  pthread_mutex_lock(&own_mutex);
  SayUp();
  pthread_mutex_lock(&own_mutex);
  asm volatile("");
}

__attribute__((noinline)) void TakeTheLock() {
  LockTwice();
  asm volatile("");
}

__attribute__((noinline)) void ReadForever(const char* path) {
  const int fd = open(path, O_RDWR);
  char byte;
  SayUp();
  if (read(fd, &byte, 1) < 0) std::exit(1);
  asm volatile("");
}

std::atomic<int> pausing{0};

__attribute__((noinline)) void PauseForever() {
  pausing += 1;
  for (;;) pause();
}

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "lock") == 0) TakeTheLock();
  if (argc > 2 && std::strcmp(argv[1], "read") == 0) ReadForever(argv[2]);
  if (argc > 1 && std::strcmp(argv[1], "orphaned") == 0) {
    std::thread([] {
      SayUp();
      PauseForever();
    }).detach();
    pthread_exit(nullptr);
  }
  if (argc < 3 || std::strcmp(argv[1], "threads") != 0) return 2;
  std::vector<std::thread> threads;
  for (int i = 1; i < std::atoi(argv[2]); ++i) threads.emplace_back(PauseForever);
  while (pausing < std::atoi(argv[2]) - 1) sched_yield();
  SayUp();
  PauseForever();
}

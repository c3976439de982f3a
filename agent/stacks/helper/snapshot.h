#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/stacks/helper/remote_memory.h"

namespace rankrun::agent {

// Registers and stack of one thread, copied while it was stopped, so that unwinding needs no
// longer stop.
struct ThreadSnapshot {
  pid_t tid = 0;
  std::vector<uint64_t> registers = {};  // by their numbers in DWARF
  uint64_t pc = 0;
  uint64_t thread_pointer = 0;  // pthread_self(); 0: unknown
  uint64_t stack_begin = 0;
  std::string stack = {};  // from stack_begin on
};

struct Snapshot {
  std::vector<ThreadSnapshot> threads;
  size_t running = 0;  // threads that could not be stopped in time, in the kernel
  int error = 0;       // errno of attaching to the process; 0: none
  std::chrono::microseconds stopped{0};
};

// Stops a process, copies its threads, calls `look` and lets it go on. A process that SIGSTOP
// has stopped stays stopped. `is_late` of `look` says when it must return.
// Waits half a second at most for the first thread to stop. Uses a thread of its own: when it ends,
// the kernel lets go each thread that stops later.
Snapshot TakeSnapshot(pid_t pid, const std::function<void(std::function<bool()> is_late)>& look);

}  // namespace rankrun::agent

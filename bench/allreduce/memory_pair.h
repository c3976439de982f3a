#pragma once

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>

#include "bench/allreduce/allreduce_peer.h"
#include "bench/allreduce/pin.h"

// Two processes that share memory, for limits of the machine.
namespace rankrun::bench {

constexpr int kProcesses = 2;

// The start of the shared memory.
class Meeting {
 public:
  Meeting() {
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&barrier_, &attributes, kProcesses);
  }

  // Returns the largest value of both processes.
  double Largest(int rank, double value) {
    values_[rank] = value;
    pthread_barrier_wait(&barrier_);
    double largest = *std::max_element(values_, values_ + kProcesses);
    pthread_barrier_wait(&barrier_);  // before the next value is written
    return largest;
  }

 private:
  pthread_barrier_t barrier_;
  double values_[kProcesses];
};

// Calls step() of both ranks as often as `plan` says, and prints its times under `name`.
void MeasureSteps(Meeting& meeting, int rank, const AllReducePlan& plan, const char* name,
                  size_t bytes, const auto& step) {
  const BatchTimes times = MeasureBatches(
      plan.batches, step, [&](double seconds) { return meeting.Largest(rank, seconds); }, [] {});
  if (rank == 0) PrintTimes(name, kProcesses, bytes, times);
}

// Calls measure(shared, rank) in two processes, each on its own core. Shared starts with zeros.
// Returns the exit code.
template <typename Shared>
int InTwoProcesses(const auto& measure) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& shared = *new (memory) Shared;
  pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int rank = child == 0 ? 1 : 0;
  if (PinToCore(rank) != 0) {
    std::perror("pin the process");
    if (child > 0) kill(child, SIGKILL);
    _exit(1);  // its parent then waits for ever at the meeting, and the benchmark kills that
  }
  measure(shared, rank);
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace rankrun::bench

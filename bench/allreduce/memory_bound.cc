// Lower bound of an AllReduce of two ranks: two processes that each run a[i] +=
// 1 on half of the data, in their own tensor. Any AllReduce must read and write
// each tensor once. For the arguments and the output see allreduce_peer.h.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include "bench/allreduce/allreduce_peer.h"

namespace rankrun::bench {
namespace {

constexpr int kProcesses = 2;

// Shared memory of both processes.
struct Meeting {
  pthread_barrier_t barrier;
  double values[kProcesses];
};

double Largest(Meeting& meeting, int rank, double value) {
  meeting.values[rank] = value;
  pthread_barrier_wait(&meeting.barrier);
  double largest = *std::max_element(meeting.values, meeting.values + kProcesses);
  pthread_barrier_wait(&meeting.barrier);  // nobody may write the next value before
  return largest;
}

void AddOne(std::vector<float>& values) {
  for (float& value : values) value += 1;
  asm volatile("" : : "r"(values.data()) : "memory");  // keeps the next call out of this loop
}

void Measure(Meeting& meeting, int rank, const AllReducePlan& plan) {
  for (size_t bytes : plan.sizes) {
    std::vector<float> tensor(std::max<size_t>(1, bytes / sizeof(float)));
    BatchTimes times = MeasureBatches(
        plan.batches, [&] { AddOne(tensor); },
        [&](double seconds) { return Largest(meeting, rank, seconds); }, [] {});
    if (rank == 0) PrintTimes("bound", kProcesses, bytes, times);
  }
}

int Main(const AllReducePlan& plan) {
  void* shared =
      mmap(nullptr, sizeof(Meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  auto& meeting = *new (shared) Meeting;
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&meeting.barrier, &attributes, kProcesses);
  pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  Measure(meeting, child == 0 ? 1 : 0, plan);
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) {
  return rankrun::bench::Main(rankrun::bench::ParseAllReducePlan(argc, argv));
}

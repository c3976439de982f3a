// What no AllReduce of two ranks can beat: two processes that each do
// a[i] += 1 on a half of the data, a tensor of its own; for each tensor has to be
// read and written once. See allreduce_peer.h for the arguments and what is
// printed.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include "bench/allreduce_peer.h"

namespace rankrun::bench {
namespace {

constexpr int kProcesses = 2;

// In memory that both processes have.
struct Meeting {
  pthread_barrier_t barrier;
  double values[kProcesses];
};

double Largest(Meeting& meeting, int rank, double value) {
  meeting.values[rank] = value;
  pthread_barrier_wait(&meeting.barrier);
  const double largest = *std::max_element(meeting.values, meeting.values + kProcesses);
  pthread_barrier_wait(&meeting.barrier);  // before the next value is written
  return largest;
}

void AddOne(std::vector<float>& values) {
  for (float& value : values) value += 1;
  asm volatile("" : : "r"(values.data()) : "memory");  // the next call is no part of this loop
}

void Measure(Meeting& meeting, int rank, const AllReducePlan& plan) {
  for (const std::size_t bytes : plan.sizes) {
    std::vector<float> tensor(std::max<std::size_t>(1, bytes / sizeof(float)));
    const BatchTimes times = MeasureBatches(
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
  const pid_t child = fork();
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

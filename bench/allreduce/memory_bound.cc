// Lower bound of an AllReduce of two ranks: two processes that each run a[i] +=
// 1 on half of the data, in their own tensor. Any AllReduce must read and write
// each tensor once. For the arguments and the output see allreduce_peer.h.

#include "bench/allreduce/memory_pair.h"

namespace rankrun::bench {
namespace {

void AddOne(std::vector<float>& values) {
  for (float& value : values) value += 1;
  asm volatile("" : : "r"(values.data()) : "memory");  // keeps the next call out of this loop
}

void Measure(Meeting& meeting, int rank, const AllReducePlan& plan) {
  for (size_t bytes : plan.sizes) {
    std::vector<float> tensor(std::max<size_t>(1, bytes / sizeof(float)));
    MeasureSteps(meeting, rank, plan, "bound", bytes, [&] { AddOne(tensor); });
  }
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) {
  using namespace rankrun::bench;
  const AllReducePlan plan = ParseAllReducePlan(argc, argv);
  return InTwoProcesses<Meeting>([&](Meeting& meeting, int rank) { Measure(meeting, rank, plan); });
}

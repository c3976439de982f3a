// Two processes that exchange data through memory, without a sum: each copies its data into
// shared memory, and then copies that of the other one. Each has its own core, and writes into
// kBuffers buffers in turn.
// Shows how fast one processor reads what another one has just written. For the arguments and the
// output see allreduce_peer.h.

#include <atomic>

#include "base/pause.h"
#include "bench/allreduce/memory_pair.h"

namespace rankrun::bench {
namespace {

constexpr size_t kBuffers = 4;
constexpr size_t kMaxBytes = size_t{64} << 20;
constexpr size_t kApart = 128;  // processors fetch cache lines in pairs

struct Side {
  alignas(kApart) std::atomic<uint64_t> written;  // exchanges
  alignas(4096) char data[kBuffers * kMaxBytes];
};

struct Shared {
  Meeting meeting;
  Side sides[kProcesses];
};

void Measure(Shared& shared, int rank, const AllReducePlan& plan) {
  Side& mine = shared.sides[rank];
  const Side& other = shared.sides[1 - rank];
  uint64_t number = 0;
  for (size_t bytes : plan.sizes) {
    if (bytes > kMaxBytes) continue;
    std::vector<char> tensor(bytes);
    MeasureSteps(shared.meeting, rank, plan, "exchange", bytes, [&] {
      const size_t at = ++number % kBuffers * bytes;
      std::memcpy(mine.data + at, tensor.data(), bytes);
      mine.written.store(number, std::memory_order_release);
      while (other.written.load(std::memory_order_acquire) < number) Pause();
      std::memcpy(tensor.data(), other.data + at, bytes);
    });
  }
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) {
  using namespace rankrun::bench;
  const AllReducePlan plan = ParseAllReducePlan(argc, argv);
  return InTwoProcesses<Shared>([&](Shared& shared, int rank) { Measure(shared, rank, plan); });
}

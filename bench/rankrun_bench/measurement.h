#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <rankrun/process_group.h>

#include "bench/batches.h"
#include "bench/rankrun_bench/options.h"
#include "bench/rankrun_bench/pattern.h"

namespace rankrun::bench {

// Figures of one line. Sizes are those of the larger of input and output of one
// rank; 0 for a barrier.
struct Figures {
  size_t bytes = 0;
  size_t count = 0;  // elements of one rank's part
  BatchTimes times = {};
  double algorithm_bandwidth = 0;  // in GB/s: bytes divided by time
  double bus_bandwidth = 0;        // traffic of each rank's link, by nccl-tests' factors
  int64_t wrong = 0;               // number of wrong elements on all ranks
};

// Returns nccl-tests' factor from algorithm bandwidth to bus bandwidth.
double BusFactor(Collective collective, int ranks);

// One collective at one size: its buffers, its call and its check.
// Lifetime: the group and the options outlive it.
class Measurement {
 public:
  // `bytes` are rounded down to whole parts of whole elements, at least one each.
  Measurement(ProcessGroup& world, const Options& options, Collective collective, size_t bytes);

  size_t bytes() const;

  // Must be called by all ranks. Throws what the collective throws.
  Figures Run();

 private:
  struct Part {
    Source source;
    bool reduced = false;  // reduced over all ranks' data, not the data of source.from
  };

  void ChooseParts();
  void Call();
  // Fills the input with new data for `round` and clears the output.
  void Prepare(int round);
  int64_t CountWrong(int round);
  std::vector<std::byte> TileOf(Part part, int round) const;
  Tensor Input();
  Tensor Output();

  ProcessGroup& world_;
  const Options& options_;
  const Collective collective_;
  const int rank_;
  const int ranks_;
  size_t count_ = 0;            // elements per part
  std::vector<Part> inputs_;    // parts that this rank sends
  std::vector<Part> expected_;  // parts that it must receive
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;  // empty if in place
};

}  // namespace rankrun::bench

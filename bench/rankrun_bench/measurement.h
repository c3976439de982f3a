#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <rankrun/process_group.h>

#include "bench/batches.h"
#include "bench/rankrun_bench/options.h"
#include "bench/rankrun_bench/pattern.h"

namespace rankrun::bench {

// What the columns of a line say. Sizes are those of the larger of input and
// output of one rank; of a barrier, 0.
struct Figures {
  std::size_t bytes = 0;
  std::size_t count = 0;  // elements of one rank's part
  BatchTimes times = {};
  double algorithm_bandwidth = 0;  // GB/s: bytes by time
  double bus_bandwidth = 0;        // what each rank's link carries, by nccl-tests' factors
  int64_t wrong = 0;               // elements, on all ranks
};

// nccl-tests' factor from algorithm to bus bandwidth.
double BusFactor(Collective collective, int ranks);

// One collective at one size: its buffers, and how it is called and checked.
// Lifetime: the group and the options outlive it.
class Measurement {
 public:
  // `bytes` are rounded down to whole parts of whole elements, at least one each.
  Measurement(ProcessGroup& world, const Options& options, Collective collective,
              std::size_t bytes);

  std::size_t bytes() const;

  // All ranks at once. Throws what the collective throws.
  Figures Run();

 private:
  struct Part {
    Source source;
    bool reduced = false;  // of all ranks' data, not of source.from's
  };

  void ChooseParts();
  void Call();
  // New data for `round`, and nothing of the old in the output.
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
  std::size_t count_ = 0;       // elements of a part
  std::vector<Part> inputs_;    // what this rank gives, part by part
  std::vector<Part> expected_;  // what it is to get
  std::vector<std::byte> input_;
  std::vector<std::byte> output_;  // empty if in place
};

}  // namespace rankrun::bench

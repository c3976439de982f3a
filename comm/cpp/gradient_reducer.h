#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rankrun/training/data_parallel.h>

#include "base/clock.h"
#include "comm/training/buckets.h"
#include "comm/training/step_progress.h"
#include "comm/training/step_statistics.h"

namespace rankrun::comm {

// Buckets of a DataParallel: copies gradients to them, reduces them while others are
// computed, and copies the averages back.
// Errors: exceptions of the group. A bucket stays in memory until its reduction has ended.
// Thread: one at a time.
class GradientReducer {
 public:
  // `parameters` outlives it. Makes no collective.
  GradientReducer(ProcessGroup& group, const std::vector<Parameter>& parameters,
                  const DataParallelOptions& options);

  const std::vector<BucketLayout>& buckets() const { return buckets_; }

  // Begins a step. `op` is kAvg, or kSum for a divisor that Finish gets.
  void Begin(ReduceOp::Kind op);
  // Returns false if this gradient had been added.
  bool Mark(size_t parameter) { return progress_.SetReady(parameter); }
  std::vector<size_t> Missing() const { return progress_.Missing(); }
  // Copy a gradient, or zeros, to its bucket.
  void Copy(size_t parameter);
  void CopyZeros(size_t parameter);
  // Starts the buckets that are complete.
  void StartComplete();
  // Waits for all buckets and copies averages to the gradients. `used`: by parameter, whether
  // this rank has a gradient; those that no rank has stay as they are. Null: all have one.
  // `divisor`: of sums.
  void Finish(const std::vector<uint8_t>* used, std::optional<int> divisor);
  // Makes the collectives of a step with zeros.
  void MakeZeroStep(ReduceOp::Kind op, bool finds_unused);

  // Notes when the step's communication began and ended, after Finish.
  void NoteTimes(StepTimes& times) const;

 private:
  using Bitmap = std::vector<uint8_t>;
  using Memory = std::shared_ptr<std::byte[]>;
  struct Place {
    size_t bucket;
    size_t offset;  // in bytes
    size_t bytes;
  };
  // Reduction of a bucket in this step.
  struct Call {
    Work work;
    std::shared_ptr<std::atomic<TimePoint::rep>> end;  // 0: not yet
  };

  void Start(size_t bucket);
  std::shared_ptr<Bitmap> StartBitmap(const Bitmap& used, Work& work);
  void CopyBack(size_t bucket, const Bitmap* used, std::optional<int> divisor);
  CallOptions Async() const;

  ProcessGroup& group_;
  const std::vector<Parameter>& parameters_;
  const Timeout timeout_;
  const std::vector<BucketLayout> buckets_;
  std::vector<Memory> memory_;  // by bucket
  std::vector<Place> places_;   // by parameter
  StepProgress progress_;
  ReduceOp::Kind op_ = ReduceOp::kAvg;
  std::vector<Call> calls_;  // in this step, by bucket
  TimePoint first_call_;
  TimePoint last_end_;
};

}  // namespace rankrun::comm

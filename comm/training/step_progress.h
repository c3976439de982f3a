#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "comm/training/buckets.h"

namespace rankrun::comm {

// Records which gradients of a step are ready, and decides which bucket is reduced next. The
// order of buckets does not depend on the order in which gradients become ready, so it is the
// same on all ranks. Pure.
class StepProgress {
 public:
  explicit StepProgress(std::span<const BucketLayout> buckets);

  void Begin();  // of a step: no gradient is ready
  // Returns false if it was ready.
  bool SetReady(size_t parameter);
  // Returns the next bucket to reduce, each one once; none: its gradients are not all ready.
  std::optional<size_t> TakeBucket();
  std::vector<size_t> Missing() const;  // ascending

  size_t parameters() const { return bucket_of_.size(); }

 private:
  std::vector<size_t> bucket_of_;  // by parameter
  std::vector<size_t> sizes_;      // in parameters, by bucket
  std::vector<bool> is_ready_;     // by parameter
  std::vector<size_t> pending_;    // gradients that are not ready, by bucket
  size_t next_ = 0;                // bucket
};

}  // namespace rankrun::comm

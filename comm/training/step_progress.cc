#include "comm/training/step_progress.h"

#include <algorithm>

namespace rankrun::comm {

StepProgress::StepProgress(std::span<const BucketLayout> buckets) {
  for (size_t i = 0; i < buckets.size(); ++i) {
    sizes_.push_back(buckets[i].parts.size());
    for (const BucketPart& part : buckets[i].parts) {
      bucket_of_.resize(std::max(bucket_of_.size(), part.parameter + 1));
      bucket_of_[part.parameter] = i;
    }
  }
  Begin();
}

void StepProgress::Begin() {
  is_ready_.assign(bucket_of_.size(), false);
  pending_ = sizes_;
  next_ = 0;
}

bool StepProgress::SetReady(size_t parameter) {
  if (is_ready_[parameter]) return false;
  is_ready_[parameter] = true;
  pending_[bucket_of_[parameter]] -= 1;
  return true;
}

std::optional<size_t> StepProgress::TakeBucket() {
  if (next_ == pending_.size() || pending_[next_] > 0) return std::nullopt;
  return next_++;
}

std::vector<size_t> StepProgress::Missing() const {
  std::vector<size_t> missing;
  for (size_t i = 0; i < is_ready_.size(); ++i) {
    if (!is_ready_[i]) missing.push_back(i);
  }
  return missing;
}

}  // namespace rankrun::comm

#include "comm/training/buckets.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rankrun::comm {

std::vector<BucketLayout> MakeBuckets(std::span<const ConstTensor> parameters,
                                      const BucketCaps& caps) {
  std::vector<BucketLayout> closed;
  std::map<DType, BucketLayout> open;
  std::map<DType, size_t> cap;
  for (size_t i = parameters.size(); i-- > 0;) {
    const ConstTensor& parameter = parameters[i];
    BucketLayout& bucket =
        open.try_emplace(parameter.dtype, BucketLayout{parameter.dtype}).first->second;
    bucket.parts.push_back({i, bucket.count, parameter.count});
    bucket.count += parameter.count;
    size_t& limit = cap.try_emplace(parameter.dtype, caps.first).first->second;
    if (bucket.bytes() < limit) continue;
    limit = caps.others;
    closed.push_back(std::move(bucket));
    open.erase(parameter.dtype);
  }
  for (auto& [dtype, bucket] : open) closed.push_back(std::move(bucket));
  // The last part of a bucket is the last one to be computed.
  std::sort(closed.begin(), closed.end(), [](const auto& a, const auto& b) {
    return a.parts.back().parameter > b.parts.back().parameter;
  });
  return closed;
}

}  // namespace rankrun::comm

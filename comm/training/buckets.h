#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <rankrun/tensor.h>

// Layout of gradients in the memory that is reduced.
namespace rankrun::comm {

// Place of one gradient.
struct BucketPart {
  size_t parameter;
  size_t offset;  // in elements
  size_t count;
};

// Gradients of one type that are reduced together.
struct BucketLayout {
  DType dtype;
  size_t count = 0;  // in elements
  std::vector<BucketPart> parts = {};

  size_t bytes() const { return count * SizeOf(dtype); }
};

// Sizes in bytes from which a bucket is closed.
struct BucketCaps {
  size_t first;  // of the first bucket of each type
  size_t others;
};

// Assigns parameters to buckets in their reverse order, in which a backward pass computes
// gradients. The buckets are in the order in which they then become complete. Pure.
// Source: PyTorch's compute_bucket_assignment_by_size.
std::vector<BucketLayout> MakeBuckets(std::span<const ConstTensor> parameters,
                                      const BucketCaps& caps);

}  // namespace rankrun::comm

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

// Adam with its usual constants. Every worker runs it on the same gradient and
// therefore gets the same weights without sending them.
// Source: Kingma and Ba 2015, https://doi.org/10.48550/arXiv.1412.6980
class Adam {
 public:
  explicit Adam(size_t weights) : mean_(weights, 0.0F), variance_(weights, 0.0F) {}

  // `step` counts from 1.
  void Update(std::span<float> weights, std::span<const float> gradient, int64_t step);

  std::vector<float>& mean() { return mean_; }
  std::vector<float>& variance() { return variance_; }

 private:
  std::vector<float> mean_;
  std::vector<float> variance_;
};

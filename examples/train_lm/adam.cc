#include "adam.h"

#include <cmath>

void Adam::Update(std::span<float> weights, std::span<const float> gradient, int64_t step) {
  constexpr float kRate = 0.003F;
  constexpr float kMeanDecay = 0.9F;
  constexpr float kVarianceDecay = 0.999F;
  constexpr float kEpsilon = 1e-8F;
  auto t = static_cast<float>(step);
  float mean_scale = 1.0F / (1.0F - std::pow(kMeanDecay, t));
  float variance_scale = 1.0F / (1.0F - std::pow(kVarianceDecay, t));
  for (size_t i = 0; i < weights.size(); ++i) {
    mean_[i] = kMeanDecay * mean_[i] + (1.0F - kMeanDecay) * gradient[i];
    variance_[i] =
        kVarianceDecay * variance_[i] + (1.0F - kVarianceDecay) * gradient[i] * gradient[i];
    weights[i] -=
        kRate * mean_[i] * mean_scale / (std::sqrt(variance_[i] * variance_scale) + kEpsilon);
  }
}

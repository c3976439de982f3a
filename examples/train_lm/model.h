#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data.h"

// Predicts the next byte: the last kContext bytes are embedded, then one hidden
// layer with tanh, then softmax over the 256 bytes. All weights are in one
// vector, so that one AllReduce moves all gradients and one write saves all
// weights:
//   embedding  kEmbedding x 256        (a column per byte)
//   hidden     H x (kContext * kEmbedding), then H biases
//   output     256 x H, then 256 biases
// Matrices are column-major.
class Model {
 public:
  static constexpr int kBytes = 256;
  static constexpr int kEmbedding = 16;

  explicit Model(int hidden);
  ~Model();

  void Randomize(uint64_t seed);

  // Adds the gradient of the summed loss over `samples` to `gradient`, which
  // has the weights' size. Returns that loss in nats.
  float AddGradient(const Data& data, std::span<const size_t> samples, std::span<float> gradient);

  // Returns the mean loss over `samples` in nats per byte.
  float Loss(const Data& data, std::span<const size_t> samples);

  std::vector<float>& weights() { return weights_; }
  int hidden() const { return hidden_; }

 private:
  struct Scratch;
  // Returns the summed loss.
  float Forward(const Data& data, std::span<const size_t> samples);

  int hidden_;
  std::vector<float> weights_;
  std::unique_ptr<Scratch> scratch_;
};

#include "model.h"

#include <Eigen/Core>
#include <cmath>
#include <random>

namespace {

using Matrix = Eigen::MatrixXf;
using Vector = Eigen::VectorXf;

constexpr int kInputs = kContext * Model::kEmbedding;

// Views of the parts of a vector with the layout of the weights; also used for
// the gradient.
template <typename Scalar, typename M, typename V>
struct Parts {
  Parts(Scalar* data, int hidden)
      : embedding(data, Model::kEmbedding, Model::kBytes),
        hidden_weights(embedding.data() + embedding.size(), hidden, kInputs),
        hidden_bias(hidden_weights.data() + hidden_weights.size(), hidden),
        output_weights(hidden_bias.data() + hidden_bias.size(), Model::kBytes, hidden),
        output_bias(output_weights.data() + output_weights.size(), Model::kBytes) {}

  Eigen::Map<M> embedding, hidden_weights;
  Eigen::Map<V> hidden_bias;
  Eigen::Map<M> output_weights;
  Eigen::Map<V> output_bias;
};
using Weights = Parts<const float, const Matrix, const Vector>;
using Gradient = Parts<float, Matrix, Vector>;

size_t CountOfWeights(int hidden) {
  return static_cast<size_t>(Model::kEmbedding * Model::kBytes + (kInputs + 1) * hidden +
                             (hidden + 1) * Model::kBytes);
}

Eigen::Index Columns(std::span<const size_t> samples) {
  return static_cast<Eigen::Index>(samples.size());
}

void Fill(Eigen::Ref<Matrix> matrix, float deviation, std::mt19937_64& random) {
  std::normal_distribution<float> normal(0.0F, deviation);
  for (Eigen::Index i = 0; i < matrix.size(); ++i) matrix.data()[i] = normal(random);
}

}  // namespace

// Buffers with one column per sample. Kept between steps, because allocating
// them in each step costs a worker up to a fifth of its time, and the others
// wait for it.
struct Model::Scratch {
  Matrix input, hidden, probability;
  Matrix hidden_error, input_error;
};

Model::Model(int hidden) : hidden_(hidden), scratch_(std::make_unique<Scratch>()) {
  weights_.resize(CountOfWeights(hidden));
}

Model::~Model() = default;

void Model::Randomize(uint64_t seed) {
  std::mt19937_64 random(seed);
  weights_.assign(weights_.size(), 0.0F);
  Gradient parts(weights_.data(), hidden_);
  Fill(parts.embedding, 1.0F, random);
  Fill(parts.hidden_weights, 1.0F / std::sqrt(static_cast<float>(kInputs)), random);
  Fill(parts.output_weights, 1.0F / std::sqrt(static_cast<float>(hidden_)), random);
}

float Model::Forward(const Data& data, std::span<const size_t> samples) {
  Weights weights(weights_.data(), hidden_);
  auto& [input, hidden, probability, hidden_error, input_error] = *scratch_;
  input.resize(kInputs, Columns(samples));
  for (Eigen::Index n = 0; n < Columns(samples); ++n) {
    auto context = data.Context(samples[static_cast<size_t>(n)]);
    for (int i = 0; i < kContext; ++i) {
      input.col(n).segment(i * kEmbedding, kEmbedding) =
          weights.embedding.col(context[static_cast<size_t>(i)]);
    }
  }
  hidden.noalias() = weights.hidden_weights * input;
  hidden = (hidden.colwise() + weights.hidden_bias).array().tanh();
  probability.noalias() = weights.output_weights * hidden;
  probability.colwise() += weights.output_bias;
  float loss = 0;
  for (Eigen::Index n = 0; n < Columns(samples); ++n) {
    auto logits = probability.col(n).array();
    logits -= logits.maxCoeff();  // exp() must not overflow
    float right = logits(data.Next(samples[static_cast<size_t>(n)]));
    logits = logits.exp();
    float sum = logits.sum();
    logits /= sum;
    loss += std::log(sum) - right;
  }
  return loss;
}

float Model::AddGradient(const Data& data, std::span<const size_t> samples,
                         std::span<float> gradient) {
  if (samples.empty()) return 0;  // more workers than samples
  float loss = Forward(data, samples);
  auto& [input, hidden, probability, hidden_error, input_error] = *scratch_;
  Weights weights(weights_.data(), hidden_);
  Gradient out(gradient.data(), hidden_);

  Matrix& error = probability;  // d loss / d logits
  for (Eigen::Index n = 0; n < Columns(samples); ++n) {
    error(data.Next(samples[static_cast<size_t>(n)]), n) -= 1.0F;
  }
  out.output_weights.noalias() += error * hidden.transpose();
  out.output_bias += error.rowwise().sum();

  hidden_error.noalias() = weights.output_weights.transpose() * error;
  hidden_error.array() *= 1.0F - hidden.array().square();
  out.hidden_weights.noalias() += hidden_error * input.transpose();
  out.hidden_bias += hidden_error.rowwise().sum();

  input_error.noalias() = weights.hidden_weights.transpose() * hidden_error;
  for (Eigen::Index n = 0; n < Columns(samples); ++n) {
    auto context = data.Context(samples[static_cast<size_t>(n)]);
    for (int i = 0; i < kContext; ++i) {
      out.embedding.col(context[static_cast<size_t>(i)]) +=
          input_error.col(n).segment(i * kEmbedding, kEmbedding);
    }
  }
  return loss;
}

float Model::Loss(const Data& data, std::span<const size_t> samples) {
  return Forward(data, samples) / static_cast<float>(samples.size());
}

#include "model.h"

#include <Eigen/Core>
#include <cmath>
#include <random>

namespace {

using Matrix = Eigen::MatrixXf;
using Vector = Eigen::VectorXf;

constexpr int kInputs = kContext * Model::kEmbedding;

// The parts of a vector laid out as the weights; of the gradient likewise.
template <typename Scalar, typename M, typename V>
struct Parts {
  Parts(Scalar* data, int hidden)
      : embedding(data, Model::kEmbedding, Model::kBytes),
        hidden_weights(embedding.data() + embedding.size(), hidden, kInputs),
        hidden_bias(hidden_weights.data() + hidden_weights.size(), hidden),
        output_weights(hidden_bias.data() + hidden_bias.size(), Model::kBytes, hidden),
        output_bias(output_weights.data() + output_weights.size(), Model::kBytes) {}

  size_t size() const {
    return static_cast<size_t>(embedding.size() + hidden_weights.size() + hidden_bias.size() +
                               output_weights.size() + output_bias.size());
  }

  Eigen::Map<M> embedding, hidden_weights;
  Eigen::Map<V> hidden_bias;
  Eigen::Map<M> output_weights;
  Eigen::Map<V> output_bias;
};
using Weights = Parts<const float, const Matrix, const Vector>;
using Gradient = Parts<float, Matrix, Vector>;

Eigen::Index Columns(std::span<const size_t> samples) {
  return static_cast<Eigen::Index>(samples.size());
}

void Fill(Eigen::Ref<Matrix> matrix, float deviation, std::mt19937_64& random) {
  std::normal_distribution<float> normal(0.0F, deviation);
  for (Eigen::Index i = 0; i < matrix.size(); ++i) matrix.data()[i] = normal(random);
}

}  // namespace

// One column per sample.
struct Model::Activations {
  Matrix input, hidden, probability;
  float loss = 0;  // summed
};

Model::Model(int hidden) : hidden_(hidden) { weights_.resize(Weights(nullptr, hidden).size()); }

void Model::Randomize(uint64_t seed) {
  std::mt19937_64 random(seed);
  weights_.assign(weights_.size(), 0.0F);
  Gradient parts(weights_.data(), hidden_);
  Fill(parts.embedding, 1.0F, random);
  Fill(parts.hidden_weights, 1.0F / std::sqrt(static_cast<float>(kInputs)), random);
  Fill(parts.output_weights, 1.0F / std::sqrt(static_cast<float>(hidden_)), random);
}

Model::Activations Model::Forward(const Data& data, std::span<const size_t> samples) const {
  const Weights weights(weights_.data(), hidden_);
  Activations a;
  a.input.resize(kInputs, Columns(samples));
  for (Eigen::Index n = 0; n < Columns(samples); ++n) {
    const auto context = data.Context(samples[static_cast<size_t>(n)]);
    for (int i = 0; i < kContext; ++i) {
      a.input.col(n).segment(i * kEmbedding, kEmbedding) =
          weights.embedding.col(context[static_cast<size_t>(i)]);
    }
  }
  a.hidden = ((weights.hidden_weights * a.input).colwise() + weights.hidden_bias).array().tanh();
  a.probability = (weights.output_weights * a.hidden).colwise() + weights.output_bias;
  for (Eigen::Index n = 0; n < Columns(samples); ++n) {
    auto logits = a.probability.col(n).array();
    logits -= logits.maxCoeff();  // exp() must not overflow
    const float right = logits(data.Next(samples[static_cast<size_t>(n)]));
    logits = logits.exp();
    const float sum = logits.sum();
    logits /= sum;
    a.loss += std::log(sum) - right;
  }
  return a;
}

float Model::AddGradient(const Data& data, std::span<const size_t> samples,
                         std::span<float> gradient) const {
  if (samples.empty()) return 0;  // more workers than samples
  Activations a = Forward(data, samples);
  const Weights weights(weights_.data(), hidden_);
  Gradient out(gradient.data(), hidden_);

  Matrix& error = a.probability;  // d loss / d logits
  for (Eigen::Index n = 0; n < Columns(samples); ++n) {
    error(data.Next(samples[static_cast<size_t>(n)]), n) -= 1.0F;
  }
  out.output_weights.noalias() += error * a.hidden.transpose();
  out.output_bias += error.rowwise().sum();

  const Matrix hidden_error =
      (weights.output_weights.transpose() * error).array() * (1.0F - a.hidden.array().square());
  out.hidden_weights.noalias() += hidden_error * a.input.transpose();
  out.hidden_bias += hidden_error.rowwise().sum();

  const Matrix input_error = weights.hidden_weights.transpose() * hidden_error;
  for (Eigen::Index n = 0; n < Columns(samples); ++n) {
    const auto context = data.Context(samples[static_cast<size_t>(n)]);
    for (int i = 0; i < kContext; ++i) {
      out.embedding.col(context[static_cast<size_t>(i)]) +=
          input_error.col(n).segment(i * kEmbedding, kEmbedding);
    }
  }
  return a.loss;
}

float Model::Loss(const Data& data, std::span<const size_t> samples) const {
  return Forward(data, samples).loss / static_cast<float>(samples.size());
}

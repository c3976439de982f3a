#pragma once

#include <string>
#include <vector>

#include <rankrun/training/data_parallel.h>

namespace rankrun::comm {

// Model of five parameters of several types and sizes. Its gradients are small whole numbers,
// whose sums are exact in any order.
class ToyModel {
 public:
  ToyModel()
      : floats_{std::vector<float>(10), std::vector<float>(100), std::vector<float>(1)},
        doubles_{std::vector<double>(7)},
        empty_{},
        float_gradients_(floats_),
        double_gradients_(doubles_) {}

  size_t size() const { return 5; }
  std::vector<float>& first() { return floats_[0]; }

  std::vector<Parameter> parameters() {
    return {{"a.weight", floats_[0], float_gradients_[0]},
            {"b.weight", floats_[1], float_gradients_[1]},
            {"c.weight", doubles_[0], double_gradients_[0]},
            {"d.weight", floats_[2], float_gradients_[2]},
            {"e.weight", empty_, empty_}};
  }

  void ComputeGradients(int rank, int step) {
    for (auto& gradient : float_gradients_) Fill(gradient, rank, step);
    for (auto& gradient : double_gradients_) Fill(gradient, rank, step);
  }

  // Returns the error in the averages of a step, empty if there is none.
  std::string Compare(int step, int ranks) const {
    std::string wrong;
    for (const auto& gradient : float_gradients_) wrong += WrongIn(gradient, step, ranks);
    for (const auto& gradient : double_gradients_) wrong += WrongIn(gradient, step, ranks);
    return wrong;
  }

 private:
  static int ValueOf(size_t element, int rank, int step) {
    return static_cast<int>(element) * (rank + 1) + 1000 * step + 7 * rank * rank;
  }
  template <typename T>
  static void Fill(std::vector<T>& gradient, int rank, int step) {
    for (size_t e = 0; e < gradient.size(); ++e)
      gradient[e] = static_cast<T>(ValueOf(e, rank, step));
  }
  template <typename T>
  static std::string WrongIn(const std::vector<T>& gradient, int step, int ranks) {
    for (size_t e = 0; e < gradient.size(); ++e) {
      int sum = 0;
      for (int rank = 0; rank < ranks; ++rank) sum += ValueOf(e, rank, step);
      T want = static_cast<T>(sum) / static_cast<T>(ranks);
      if (gradient[e] == want) continue;
      return "step " + std::to_string(step) + ", element " + std::to_string(e) + " of " +
             std::to_string(gradient.size()) + " is " + std::to_string(gradient[e]) + ", want " +
             std::to_string(want) + "; ";
    }
    return "";
  }

  std::vector<std::vector<float>> floats_;
  std::vector<std::vector<double>> doubles_;
  std::vector<float> empty_;
  std::vector<std::vector<float>> float_gradients_;
  std::vector<std::vector<double>> double_gradients_;
};

}  // namespace rankrun::comm

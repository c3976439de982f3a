#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <string_view>

namespace rankrun::store {

// Source of the choices that determine a history of requests.
class Choices {
 public:
  virtual ~Choices() = default;
  virtual size_t Below(size_t bound) = 0;  // `bound` is from 1 to 256
  virtual bool are_over() const = 0;
};

class RandomChoices final : public Choices {
 public:
  RandomChoices(unsigned seed, int count) : random_(seed), left_(count) {}
  size_t Below(size_t bound) override {
    left_ -= 1;
    return std::uniform_int_distribution<size_t>(0, bound - 1)(random_);
  }
  bool are_over() const override { return left_ <= 0; }

 private:
  std::mt19937 random_;
  int left_;
};

// Takes each choice from one byte.
class ByteChoices final : public Choices {
 public:
  explicit ByteChoices(std::string_view bytes) : bytes_(bytes) {}
  size_t Below(size_t bound) override {
    if (bytes_.empty()) return 0;
    size_t choice = static_cast<unsigned char>(bytes_.front()) % bound;
    bytes_.remove_prefix(1);
    return choice;
  }
  bool are_over() const override { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

// Runs a history of a few connections over a few keys against an engine with
// small limits and against its model until the choices end. Then removes
// everything. Returns the first difference or leftover; empty if there
// is none.
std::string CheckEngineHistory(Choices& choices);

}  // namespace rankrun::store

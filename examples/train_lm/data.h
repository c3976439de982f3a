#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

inline constexpr int kContext = 8;  // bytes that predict the next one

// The text as samples: kContext bytes and the byte that follows.
class Data {
 public:
  // Throws std::runtime_error if the file cannot be read or is too short.
  explicit Data(const std::string& file);

  // Returns the samples of one step, each by the position of its first byte.
  // The result depends on the arguments only, so every worker computes the same
  // global batch, whatever the number of workers, and takes its share of it.
  std::vector<size_t> Draw(uint64_t seed, uint64_t step, int count) const;

  std::span<const unsigned char> Context(size_t sample) const {
    return std::span(bytes_).subspan(sample, kContext);
  }
  unsigned char Next(size_t sample) const { return bytes_[sample + kContext]; }

 private:
  std::vector<unsigned char> bytes_;
};

// Returns the share of one of `world_size` workers in a global batch. Sizes
// differ by one at most.
std::span<const size_t> Share(std::span<const size_t> batch, int global_rank, int world_size);

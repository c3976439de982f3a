#include "data.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>

Data::Data(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("open " + file + ": " + std::strerror(errno));
  bytes_.assign(std::istreambuf_iterator<char>(in), {});
  if (bytes_.size() <= kContext) {
    throw std::runtime_error("read " + file + ": " + std::to_string(bytes_.size()) +
                             " bytes, want more than " + std::to_string(kContext));
  }
}

std::vector<size_t> Data::Draw(uint64_t seed, uint64_t step, int count) const {
  std::seed_seq mix{seed & 0xffffffff, seed >> 32, step & 0xffffffff, step >> 32};
  std::mt19937_64 random(mix);
  std::uniform_int_distribution<size_t> place(0, bytes_.size() - kContext - 1);
  std::vector<size_t> samples(static_cast<size_t>(count));
  for (size_t& sample : samples) sample = place(random);
  return samples;
}

std::span<const size_t> Share(std::span<const size_t> batch, int global_rank, int world_size) {
  auto rank = static_cast<size_t>(global_rank);
  auto size = static_cast<size_t>(world_size);
  size_t begin = batch.size() * rank / size;
  size_t end = batch.size() * (rank + 1) / size;
  return batch.subspan(begin, end - begin);
}

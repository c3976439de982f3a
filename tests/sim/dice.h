#pragma once

#include <chrono>
#include <cstdint>

namespace rankrun::sim {

using std::chrono::milliseconds;

// Random numbers that depend only on the seed (splitmix64).
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int Below(int n) { return static_cast<int>(Next() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  milliseconds Between(int least, int most) {
    return milliseconds(least + Below(most - least + 1));
  }

 private:
  uint64_t state_;
};

}  // namespace rankrun::sim

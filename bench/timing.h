#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

namespace rankrun::bench {

using Milliseconds = std::chrono::duration<double, std::milli>;

inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace rankrun::bench

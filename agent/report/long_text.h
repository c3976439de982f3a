#pragma once

#include <string>

namespace rankrun::agent {

// Longest line of an output that is searched; a longer one keeps its first and its last half of
// this. Pure.
constexpr size_t kMaxLine = 4096;

inline std::string WithoutMiddle(std::string line) {
  if (line.size() > kMaxLine) line.erase(kMaxLine / 2, line.size() - kMaxLine);
  return line;
}

}  // namespace rankrun::agent

#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

namespace rankrun::test {

// Returns the output of `command` as lines, each with its line end.
inline std::vector<std::string> LinesOf(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return lines;
  std::array<char, 4096> line;
  while (fgets(line.data(), line.size(), pipe) != nullptr) lines.emplace_back(line.data());
  EXPECT_EQ(pclose(pipe), 0) << command;
  return lines;
}

}  // namespace rankrun::test

#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/paths.h"

// Files of the source tree, for tests that compare them with tables.
namespace rankrun::launcher {

inline std::string ReadSource(const std::string& path) {
  std::ifstream file(test::InSource(path));
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the generated part of a page in man/, with the comments around it.
inline std::string GeneratedPartOf(const std::string& name) {
  constexpr std::string_view kEnd = ".\\\" End of the generated part.\n";
  std::string page = ReadSource("man/" + name);
  size_t begin = page.find(".\\\" Generated from ");
  size_t end = page.find(kEnd);
  EXPECT_NE(begin, std::string::npos) << name;
  EXPECT_NE(end, std::string::npos) << name;
  if (begin == std::string::npos || end == std::string::npos) return "";
  return page.substr(begin, end + kEnd.size() - begin);
}

}  // namespace rankrun::launcher

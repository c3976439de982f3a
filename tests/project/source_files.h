#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/paths.h"

namespace rankrun::test {

inline std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Returns the C++ files below a folder of the source tree, relative to its root.
inline std::vector<std::string> SourceFiles(const std::string& folder) {
  std::filesystem::path root = test::InSource();
  std::vector<std::string> files;
  if (!std::filesystem::exists(root / folder)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
    std::filesystem::path ending = entry.path().extension();
    if (!entry.is_regular_file() || (ending != ".h" && ending != ".cc")) continue;
    files.push_back(std::filesystem::relative(entry.path(), root));
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace rankrun::test

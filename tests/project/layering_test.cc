#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>

#include "tests/project/source_files.h"

namespace rankrun {
namespace {

// What each folder may include besides itself. "rankrun" is <rankrun/...>,
// the public headers.
const std::map<std::string, std::set<std::string>> kBelow = {
    {"base", {}},
    {"store", {"base"}},
    {"agent", {"store", "base"}},
    {"launcher", {"agent", "store", "base"}},
    {"cli", {"launcher", "agent", "store", "base"}},
    {"comm", {"rankrun", "store", "base"}},
    {"bench", {"rankrun", "launcher", "agent", "comm", "store", "base"}},
    {"examples", {"rankrun"}},
};

// Libraries that only .cc files may see.
constexpr const char* kHidden[] = {"<uv.h", "<uv/",   "<spdlog/", "<CLI/",   "<nlohmann/",
                                   "<fmt/", "<gloo/", "<hwloc",   "<sodium", "<dlpack/"};

struct Include {
  std::string file;    // "agent/worker.cc"
  std::string target;  // "<vector>", "\"base/fd.h\""
};

std::vector<Include> IncludesOf(const std::string& folder) {
  std::vector<Include> includes;
  for (const std::string& file : test::SourceFiles(folder)) {
    std::istringstream text(test::ReadText(std::filesystem::path(RANKRUN_SOURCE_DIR) / file));
    for (std::string line; std::getline(text, line);) {
      std::erase(line, ' ');
      size_t begin = line.find_first_of("<\"");
      if (!line.starts_with("#include") || begin == std::string::npos) continue;
      size_t end = line.find_first_of(">\"", begin + 1);
      includes.push_back({file, line.substr(begin, end - begin + 1)});
    }
  }
  return includes;
}

// The folder of ours that an include names: "base" for "base/fd.h", "rankrun"
// for <rankrun/tensor.h>, "" for the rest.
std::string FolderOf(const std::string& target) {
  std::string folder = target.substr(1, target.find('/') - 1);
  if (target.find('/') == std::string::npos) return "";
  bool ours = folder == "rankrun" || kBelow.contains(folder) || folder == "tests";
  return ours ? folder : "";
}

TEST(LayeringTest, ArrowsPointDown) {
  for (const auto& [folder, below] : kBelow) {
    std::vector<Include> includes = IncludesOf(folder);
    EXPECT_FALSE(includes.empty()) << folder << "/ was not found";
    for (const Include& include : includes) {
      std::string to = FolderOf(include.target);
      EXPECT_TRUE(to.empty() || to == folder || below.contains(to))
          << include.file << " includes " << include.target;
    }
  }
}

TEST(LayeringTest, OurHeadersAreNamedFromTheRoot) {
  for (const char* folder : {"base", "store", "agent", "launcher", "cli", "comm"}) {
    for (const Include& include : IncludesOf(folder)) {
      if (include.target[0] != '"') continue;
      EXPECT_NE(FolderOf(include.target), "") << include.file << " includes " << include.target;
    }
  }
}

TEST(LayeringTest, LibuvIsVisibleInItsWrappersOnly) {
  int wrappers = 0;
  for (const auto& [folder, below] : kBelow) {
    for (const Include& include : IncludesOf(folder)) {
      if (!include.target.starts_with("<uv")) continue;
      if (include.file == "bench/store_echo.cc") continue;  // libuv without us, to compare with
      EXPECT_TRUE(include.file.starts_with("base/uv_") && include.file.ends_with(".cc"))
          << include.file << " includes " << include.target;
      wrappers += 1;
    }
  }
  EXPECT_GT(wrappers, 5);
}

TEST(LayeringTest, NoHeaderShowsALibrary) {
  for (const auto& [folder, below] : kBelow) {
    for (const Include& include : IncludesOf(folder)) {
      if (!include.file.ends_with(".h") || include.file.starts_with("comm/gloo/")) continue;
      EXPECT_NE(include.target, "\"agent/cbor_fields.h\"")
          << include.file << ": for .cc files only";
      if (include.file == "agent/cbor_fields.h") continue;  // templates
      for (const char* hidden : kHidden) {
        EXPECT_FALSE(include.target.starts_with(hidden))
            << include.file << " includes " << include.target;
      }
    }
  }
}

TEST(LayeringTest, EveryHeaderIsIncludedOnce) {
  for (const auto& [folder, below] : kBelow) {
    for (const std::string& file : test::SourceFiles(folder)) {
      if (!file.ends_with(".h")) continue;
      std::string text = test::ReadText(std::filesystem::path(RANKRUN_SOURCE_DIR) / file);
      EXPECT_NE(text.find("#pragma once\n"), std::string::npos) << file;
    }
  }
}

TEST(LayeringTest, FilesHaveTheSizeOfOneIdea) {
  for (const auto& [folder, below] : kBelow) {
    for (const std::string& file : test::SourceFiles(folder)) {
      std::string text = test::ReadText(std::filesystem::path(RANKRUN_SOURCE_DIR) / file);
      auto lines = std::count(text.begin(), text.end(), '\n');
      EXPECT_LE(lines, file.ends_with(".h") ? 150 : 400) << file;
    }
  }
}

}  // namespace
}  // namespace rankrun

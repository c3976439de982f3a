#include <gtest/gtest.h>

#include <filesystem>

#include "tests/agent/control/control_check.h"
#include "tests/paths.h"
#include "tests/project/source_files.h"

// Runs the corpus of the fuzz target and its former findings, in builds without
// libFuzzer.

namespace rankrun::agent {
namespace {

TEST(ControlCorpusTest, EachFileKeepsThePromises) {
  std::filesystem::path root = test::InSource("tests/fuzz");
  int files = 0;
  for (const char* folder : {"corpus", "crashes"}) {
    if (!std::filesystem::exists(root / folder / "control")) continue;
    for (const auto& entry : std::filesystem::directory_iterator(root / folder / "control")) {
      EXPECT_EQ(CheckControlInput(test::ReadText(entry.path())), "") << entry.path();
      files += 1;
    }
  }
  EXPECT_GT(files, 10);
}

}  // namespace
}  // namespace rankrun::agent

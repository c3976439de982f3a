#include <gtest/gtest.h>

#include <filesystem>

#include "tests/paths.h"
#include "tests/project/source_files.h"
#include "tests/store/engine/engine_history.h"
#include "tests/store/wire/wire_check.h"

// Runs the initial inputs of the fuzz targets, and all inputs that ever found a
// bug, in builds without libFuzzer.

namespace rankrun::store {
namespace {

struct CorpusFile {
  std::string path;
  std::string bytes;
};

// Returns the corpus of one target, and its crashes if there are any.
std::vector<CorpusFile> FilesFor(const std::string& target) {
  std::filesystem::path root = test::InSource("tests/fuzz");
  std::vector<CorpusFile> files;
  for (const char* folder : {"corpus", "crashes"}) {
    if (!std::filesystem::exists(root / folder / target)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(root / folder / target)) {
      files.push_back({entry.path(), test::ReadText(entry.path())});
    }
  }
  return files;
}

TEST(CorpusTest, TheDecoderKeepsItsPromisesOnEachFile) {
  auto files = FilesFor("wire");
  EXPECT_GT(files.size(), 20u);
  for (const CorpusFile& file : files) EXPECT_EQ(CheckWireInput(file.bytes), "") << file.path;
}

TEST(CorpusTest, TheEngineAgreesWithItsModelOnEachFile) {
  auto files = FilesFor("engine");
  EXPECT_GT(files.size(), 20u);
  for (const CorpusFile& file : files) {
    ByteChoices choices(file.bytes);
    EXPECT_EQ(CheckEngineHistory(choices), "") << file.path;
  }
}

}  // namespace
}  // namespace rankrun::store

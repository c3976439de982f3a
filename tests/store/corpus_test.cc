#include <gtest/gtest.h>

#include <filesystem>

#include "tests/project/source_files.h"
#include "tests/store/engine_history.h"
#include "tests/store/wire_check.h"

// The inputs that the fuzz targets begin with, and those that ever broke
// something, in builds without libFuzzer.

namespace rankrun::store {
namespace {

struct CorpusFile {
  std::string path;
  std::string bytes;
};

// Of one target: its corpus, and its crashes if there are any.
std::vector<CorpusFile> FilesFor(const std::string& target) {
  const std::filesystem::path root = RANKRUN_SOURCE_DIR "/tests/fuzz";
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
  const auto files = FilesFor("wire");
  EXPECT_GT(files.size(), 20u);
  for (const CorpusFile& file : files) EXPECT_EQ(CheckWireInput(file.bytes), "") << file.path;
}

TEST(CorpusTest, TheEngineAgreesWithItsModelOnEachFile) {
  const auto files = FilesFor("engine");
  EXPECT_GT(files.size(), 20u);
  for (const CorpusFile& file : files) {
    ByteChoices choices(file.bytes);
    EXPECT_EQ(CheckEngineHistory(choices), "") << file.path;
  }
}

}  // namespace
}  // namespace rankrun::store

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/paths.h"
#include "tests/project/source_files.h"

namespace rankrun {
namespace {

// Returns the commands of the compiler, and the sources of units that several sources share.
std::string CompiledSources() {
  std::string text = test::ReadText(test::InBuild("compile_commands.json"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(test::InBuild("tests"))) {
    bool is_unit = entry.path().extension() == ".cxx";
    if (is_unit) text += test::ReadText(entry.path());
  }
  return text;
}

// A build without NCCL's headers or Open MPI has no test of theirs.
bool IsLeftOut(const std::string& file, const std::string& sources) {
  for (const char* folder : {"tests/nccl/", "tests/mpi/"}) {
    if (file.starts_with(folder)) return sources.find(test::InSource(folder)) == std::string::npos;
  }
  return false;
}

TEST(TestsAreBuiltTest, EveryTestFileIsInATarget) {
  const std::string sources = CompiledSources();
  ASSERT_FALSE(sources.empty());
  int found = 0;
  for (const std::string& file : test::SourceFiles("tests")) {
    if (!file.ends_with("_test.cc") || IsLeftOut(file, sources)) continue;
    bool is_built = sources.find(": \"" + test::InSource(file) + "\"") != std::string::npos ||
                    sources.find("#include \"" + test::InSource(file) + "\"") != std::string::npos;
    EXPECT_TRUE(is_built) << file << " is in no target";
    found += 1;
  }
  EXPECT_GT(found, 40);
}

// CMake compiles tests only from files with that name.
TEST(TestsAreBuiltTest, EveryFileWithTestsHasATestsName) {
  for (const std::string& file : test::SourceFiles("tests")) {
    if (file.ends_with("_test.cc")) continue;
    std::string text = test::ReadText(test::InSource(file));
    for (const char* macro : {"\nTEST(", "\nTEST_F(", "\nTEST_P(", "\nTYPED_TEST("}) {
      EXPECT_EQ(text.find(macro), std::string::npos) << file;
    }
  }
}

}  // namespace
}  // namespace rankrun

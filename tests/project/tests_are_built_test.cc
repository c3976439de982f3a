#include <gtest/gtest.h>

#include "tests/paths.h"
#include "tests/project/source_files.h"

namespace rankrun {
namespace {

TEST(TestsAreBuiltTest, EveryTestFileIsInATarget) {
  std::string commands = test::ReadText(test::InBuild("compile_commands.json"));
  ASSERT_FALSE(commands.empty());
  int found = 0;
  for (const std::string& file : test::SourceFiles("tests")) {
    if (!file.ends_with("_test.cc")) continue;
    std::string entry = "\"file\": \"" + test::InSource(file) + "\"";
    EXPECT_NE(commands.find(entry), std::string::npos) << file << " is in no target";
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

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "tests/paths.h"
#include "tests/project/command.h"
#include "tests/project/source_files.h"

namespace rankrun {
namespace {

using test::LinesOf;

const std::string kLibrary = test::Library("librankrun.so");

TEST(ExportsTest, EveryFunctionOfTheCHeadersIsThere) {
  void* library = dlopen(kLibrary.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  std::regex declaration(R"(RANKRUN_API [^;(]*\b(rankrun_\w+)\()");
  int found = 0;
  for (const std::string& file : test::SourceFiles("comm")) {
    if (!file.ends_with(".h")) continue;
    std::string text = test::ReadText(test::InSource(file));
    for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
      EXPECT_NE(dlsym(library, (*it)[1].str().c_str()), nullptr) << (*it)[1];
      found += 1;
    }
  }
  EXPECT_GT(found, 70);
}

// An exported template of the standard library could replace the one in a program.
TEST(ExportsTest, NothingElseIs) {
  auto lines = LinesOf("nm -D --defined-only -C " + kLibrary);
  EXPECT_GT(lines.size(), 100U);
  std::regex ours(R"(^\w* \w ((vtable|typeinfo|typeinfo name) for )?rankrun(::|_)[\s\S]*)");
  for (const std::string& line : lines) EXPECT_TRUE(std::regex_match(line, ours)) << line;
}

struct PluginExportsTest : testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Plugins, PluginExportsTest,
                         testing::Values("librankrun_gloo.so", "librankrun_mpi.so",
                                         "librankrun_nccl.so"));

TEST_P(PluginExportsTest, APluginHasItsEntryAndNothingElse) {
  const std::string plugin = test::Library(GetParam());
  if (!std::filesystem::exists(plugin)) GTEST_SKIP() << "built without " << GetParam();
  auto lines = LinesOf("nm -D --defined-only -C " + plugin);
  ASSERT_EQ(lines.size(), 1U) << testing::PrintToString(lines);
  EXPECT_TRUE(lines[0].ends_with(" T rankrun_backend_plugin\n")) << lines[0];
}

}  // namespace
}  // namespace rankrun

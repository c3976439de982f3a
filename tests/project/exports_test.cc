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
const std::string kRpcLibrary = test::Library("librankrun_rpc.so");

void* Opened(const std::string& library) {
  void* opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(opened, nullptr) << dlerror();
  return opened;
}

// Those of RPC are in a library of their own.
TEST(ExportsTest, EveryFunctionOfTheCHeadersIsThere) {
  void* library = Opened(kLibrary);
  void* rpc_library = Opened(kRpcLibrary);
  ASSERT_TRUE(library != nullptr && rpc_library != nullptr);
  std::regex declaration(R"(RANKRUN_API [^;(]*\b(rankrun_\w+)\()");
  int found = 0;
  for (const std::string& file : test::SourceFiles("comm")) {
    if (!file.ends_with(".h")) continue;
    void* its_library = file.ends_with("c/rpc.h") ? rpc_library : library;
    std::string text = test::ReadText(test::InSource(file));
    for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it) {
      EXPECT_NE(dlsym(its_library, (*it)[1].str().c_str()), nullptr) << (*it)[1];
      found += 1;
    }
  }
  EXPECT_GT(found, 70);
}

// Expects that a library exports more than `least` names, which all match.
void ExpectExports(const std::string& library, const std::string& names, size_t least) {
  auto lines = LinesOf("nm -D --defined-only -C " + library);
  EXPECT_GT(lines.size(), least);
  std::regex ours(R"(^\w* \w ((vtable|typeinfo|typeinfo name) for )?()" + names + R"()[\s\S]*)");
  for (const std::string& line : lines) EXPECT_TRUE(std::regex_match(line, ours)) << line;
}

// An exported template of the standard library could replace the one in a program.
TEST(ExportsTest, NothingElseIs) {
  ExpectExports(kLibrary, "rankrun::(?!rpc::)|rankrun_(?!rpc_)", 100);
}
TEST(ExportsTest, TheLibraryOfRpcHasNothingElse) {
  ExpectExports(kRpcLibrary, "rankrun::rpc::|rankrun_rpc_", 50);
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

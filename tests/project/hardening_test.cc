// The effects of cmake/hardening.cmake and of g++'s defaults on the built programs.

#include <gtest/gtest.h>

#include <regex>

#include "tests/paths.h"
#include "tests/project/command.h"

namespace rankrun {
namespace {

// Returns whether a line of `readelf OPTIONS FILE` matches `pattern`.
bool Shows(const std::string& options, const std::string& file, const std::string& pattern) {
  const std::regex regex(pattern);
  for (const std::string& line : test::LinesOf("LC_ALL=C readelf --wide " + options + " " + file)) {
    if (std::regex_search(line, regex)) return true;
  }
  return false;
}

struct Hardening : testing::TestWithParam<std::string> {
  void SetUp() override {
#ifdef RANKRUN_SANITIZED
    GTEST_SKIP() << "sanitizers check more";
#endif
  }
};

// The parameter is a program or library, relative to the build folder.
struct LinkHardeningTest : Hardening {
  const std::string file = test::InBuild(GetParam());
};

TEST_P(LinkHardeningTest, ItsAddressIsRandom) {
  EXPECT_TRUE(Shows("--file-header", file, "Type: +DYN "));
}

TEST_P(LinkHardeningTest, ItsRelocationsAreReadOnly) {
  EXPECT_TRUE(Shows("--program-headers", file, "GNU_RELRO"));
  EXPECT_TRUE(Shows("--dynamic", file, R"(\(FLAGS_1\).* NOW)")) << "they change after the start";
}

TEST_P(LinkHardeningTest, ItsStackIsNotExecutable) {
  EXPECT_TRUE(Shows("--program-headers", file, "GNU_STACK .* RW +0x"));
}

INSTANTIATE_TEST_SUITE_P(Files, LinkHardeningTest,
                         testing::Values("bin/rankrun", "bin/rankctl", "lib/librankrun.so"),
                         [](const auto& file) {
                           std::string name = file.param.substr(4);
                           return name.substr(0, name.find('.'));
                         });

// The parameter is a layer. Programs contain libraries that are not ours, too.
struct CodeHardeningTest : Hardening {
  const std::string file = test::InBuild(GetParam()) + "/librankrun_" + GetParam() + ".a";
};

TEST_P(CodeHardeningTest, ReturnAddressesAreChecked) {
  EXPECT_TRUE(Shows("--syms", file, " UND __stack_chk_fail\n"));
}

TEST_P(CodeHardeningTest, SizesAndIndicesAreChecked) {
#ifndef __OPTIMIZE__
  GTEST_SKIP() << "only in optimized builds";
#endif
  EXPECT_TRUE(Shows("--syms", file, " UND __snprintf_chk\n")) << "_FORTIFY_SOURCE";
  EXPECT_TRUE(Shows("--syms", file, " UND _ZSt21__glibcxx_assert_fail")) << "_GLIBCXX_ASSERTIONS";
}

INSTANTIATE_TEST_SUITE_P(Layers, CodeHardeningTest,
                         testing::Values("base", "store", "agent", "launcher", "cli", "comm"),
                         [](const auto& layer) { return layer.param; });

}  // namespace
}  // namespace rankrun

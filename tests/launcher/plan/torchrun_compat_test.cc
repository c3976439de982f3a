#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "launcher/flags/flags.h"
#include "tests/launcher/flags/man_page.h"
#include "tests/paths.h"

// Checks docs/torchrun-compat.md: each row names an existing test, and each
// flag of torchrun has a row.
namespace rankrun::launcher {
namespace {

const std::string kDocument = "docs/torchrun-compat.md";

// Returns the cells of each row, without the headings.
std::vector<std::vector<std::string>> Rows() {
  std::istringstream lines(ReadSource(kDocument));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.starts_with("| ---") || line.ends_with("| test |"))
      continue;
    std::istringstream text(line.substr(2));
    rows.emplace_back();
    for (std::string cell; std::getline(text, cell, '|');) rows.back().push_back(cell);
  }
  return rows;
}

std::set<std::string> AllMatches(const std::string& text, const std::regex& pattern,
                                 const std::string& format) {
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) {
    found.insert(i->format(format));
  }
  return found;
}

// Returns the names of all tests as the document has them.
std::set<std::string> KnownTests() {
  std::set<std::string> known = AllMatches(ReadSource("tests/interop/torchrun/compare.py"),
                                           std::regex(R"(Case\(("[^"]+"))"), "$1");
  known.merge(AllMatches(ReadSource("tests/interop/CMakeLists.txt"),
                         std::regex(R"(rankrun_interop_test(?:_of_both)?\((\w+))"), "interop/$1"));
  std::regex test(R"(\nTEST(?:_F|_P)?\((\w+), (\w+)\))");
  std::filesystem::path root = test::InSource();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "tests")) {
    if (entry.path().extension() != ".cc") continue;
    known.merge(
        AllMatches(ReadSource(std::filesystem::relative(entry.path(), root)), test, "$1.$2"));
  }
  return known;
}

TEST(TorchrunCompatTest, EachRowHasTestsThatExist) {
  std::set<std::string> known = KnownTests();
  std::regex name(R"("[^"]+"|[\w/]+\.?\w*)");
  ASSERT_GT(Rows().size(), 60U);
  for (const auto& row : Rows()) {
    ASSERT_EQ(row.size(), 3U) << row[0];
    std::set<std::string> tests = AllMatches(row[2], name, "$&");
    EXPECT_FALSE(tests.empty()) << row[0] << "has no test";
    for (const std::string& test : tests) {
      EXPECT_TRUE(known.contains(test)) << row[0] << "names " << test << ", which is no test";
    }
  }
}

TEST(TorchrunCompatTest, EachRowComparesRankrun) {
  for (const auto& row : Rows()) {
    bool says = std::regex_search(row[1], std::regex("^ (same|better|refused|not read)"));
    EXPECT_TRUE(says) << row[0] << ":" << row[1];
  }
}

TEST(TorchrunCompatTest, EachFlagOfTorchrunHasARow) {
  std::string options;
  for (const auto& row : Rows()) options += row[0];
  for (const Flag& flag : Flags()) {
    if (!flag.from_torchrun || flag.name == "help") continue;
    EXPECT_NE(options.find("`--" + std::string(flag.name) + "`"), std::string::npos) << flag.name;
  }
}

}  // namespace
}  // namespace rankrun::launcher

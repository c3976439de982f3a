// docs/torch-distributed.md: each part that exists has tests and vectors that
// exist, no absent part has any, and no name is in both tables. Each vector,
// and each numbered test of misuse, has a row. The rows are those of
// torch_distributed.txt.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/paths.h"

namespace rankrun::comm {
namespace {

const std::filesystem::path kRoot = test::InSource();

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> AllMatches(const std::string& text, const char* pattern,
                                 const std::string& format) {
  std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) {
    found.insert(i->format(format));
  }
  return found;
}

using Rows = std::vector<std::vector<std::string>>;

// Returns the cells of each row of all tables in the section, without heading
// rows.
Rows RowsOf(const std::string& section) {
  std::string text = Read(kRoot / "docs/torch-distributed.md");
  size_t begin = text.find("\n## " + section + "\n");
  if (begin == std::string::npos) {
    ADD_FAILURE() << "no section \"" << section << "\"";
    return {};
  }
  std::istringstream lines(text.substr(begin, text.find("\n## ", begin + 1) - begin));
  Rows rows;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.starts_with("| ---")) continue;
    if (line.starts_with("| torch.distributed |")) continue;
    std::istringstream cells(line.substr(2));
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '|');) rows.back().push_back(cell);
  }
  return rows;
}

Rows Present() { return RowsOf("Parts that exist"); }
Rows Absent() { return RowsOf("Absent parts"); }

// Returns "send", "send(tensor)" and "send(dst)" for "send(tensor, dst)", and all other
// names as they are.
std::set<std::string> WithArguments(const std::string& name) {
  size_t open = name.find('(');
  if (open == std::string::npos) return {name};
  std::string function = name.substr(0, open);
  std::set<std::string> names = {function};
  names.merge(AllMatches(name.substr(open), R"(\w+)", function + "($&)"));
  return names;
}

// Returns the names of torch.distributed in the first cell of a row: functions, their
// arguments, and the "headings" of its documentation.
std::set<std::string> TorchNames(const std::vector<std::string>& row) {
  std::set<std::string> names = AllMatches(row[0], R"("[^"]+")", "$&");
  for (const std::string& name : AllMatches(row[0], "`([^`]+)`", "$1")) {
    names.merge(WithArguments(name));
  }
  return names;
}

std::set<std::string> KnownTests() {
  std::set<std::string> known;
  for (const char* folder : {"tests/comm", "tests/nccl", "tests/process"}) {
    for (const auto& file : std::filesystem::recursive_directory_iterator(kRoot / folder)) {
      if (file.path().extension() != ".cc") continue;
      known.merge(AllMatches(Read(file.path()), R"(\nTEST(?:_F|_P)?\((\w+), (\w+)\))", "$1.$2"));
    }
  }
  return known;
}

std::set<std::string> KnownVectors() {
  return AllMatches(Read(kRoot / "tests/comm/vectors.json"), R"re("id":"([^"]+)")re", "$1");
}

struct Named {
  std::set<std::string> tests;
  std::set<std::string> vectors;
};

Named NamedIn(const std::string& cell) {
  return {AllMatches(cell, R"(\w+\.\w+)", "$&"), AllMatches(cell, "`([^`]+)`", "$1")};
}

TEST(CommDocumentedTest, EachPartThatExistsHasTestsThatExist) {
  auto tests = KnownTests();
  auto vectors = KnownVectors();
  Rows rows = Present();
  ASSERT_GT(rows.size(), 50U);
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 3U) << row[0];
    Named named = NamedIn(row[2]);
    EXPECT_FALSE(named.tests.empty() && named.vectors.empty()) << row[0];
    for (const auto& test : named.tests) EXPECT_TRUE(tests.contains(test)) << row[0] << test;
    for (const auto& id : named.vectors) EXPECT_TRUE(vectors.contains(id)) << row[0] << id;
  }
}

TEST(CommDocumentedTest, EachAbsentPartHasOneRowAndNoTest) {
  auto tests = KnownTests();
  auto vectors = KnownVectors();
  Rows rows = Absent();
  ASSERT_FALSE(rows.empty());
  std::set<std::string> seen;
  for (const auto& row : rows) {
    ASSERT_EQ(row.size(), 2U) << row[0];
    auto names = AllMatches(row[0], "[`\"]([^`\"]+)[`\"]", "$1");
    ASSERT_EQ(names.size(), 1U) << row[0];
    EXPECT_TRUE(seen.insert(*names.begin()).second) << row[0] << "has two rows";
    for (const auto& cell : row) {
      Named named = NamedIn(cell);
      for (const auto& test : named.tests) EXPECT_FALSE(tests.contains(test)) << row[0] << test;
      for (const auto& id : named.vectors) EXPECT_FALSE(vectors.contains(id)) << row[0] << id;
    }
  }
}

std::set<std::string> NamesOf(const Rows& rows) {
  std::set<std::string> names;
  for (const auto& row : rows) names.merge(TorchNames(row));
  return names;
}

TEST(CommDocumentedTest, NoNameIsPresentAndAbsent) {
  std::set<std::string> present = NamesOf(Present());
  for (const auto& row : Absent()) {
    std::string name = row[0].substr(1, row[0].find('`', 1) - 1);
    EXPECT_FALSE(present.contains(name)) << name;
  }
}

TEST(CommDocumentedTest, TheRowsAreThoseOfTheList) {
  std::set<std::string> on_page = NamesOf(Present());
  on_page.merge(NamesOf(Absent()));
  std::set<std::string> listed;
  std::istringstream lines(Read(kRoot / "tests/comm/torch_distributed.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] != '#') listed.merge(WithArguments(line));
  }
  ASSERT_GT(listed.size(), 500U);
  for (const auto& name : listed) EXPECT_TRUE(on_page.contains(name)) << name << " has no row";
  for (const auto& name : on_page) EXPECT_TRUE(listed.contains(name)) << name << " is not listed";
}

TEST(CommDocumentedTest, EachVectorAndEachNumberedTestHasARow) {
  Named named;
  for (const auto& row : Present()) {
    Named here = NamedIn(row.back());
    named.tests.merge(here.tests);
    named.vectors.merge(here.vectors);
  }
  EXPECT_EQ(named.vectors, KnownVectors());
  std::set<std::string> numbers;
  for (const std::string& test : KnownTests()) {
    if (!std::regex_search(test, std::regex(R"(\.N\d\d_)"))) continue;
    if (test.starts_with("GpuNegative")) continue;  // the same cases on GPU memory
    EXPECT_TRUE(named.tests.contains(test)) << test;
    numbers.insert(test.substr(test.find('.') + 1, 3));
  }
  EXPECT_EQ(numbers.size(), 30U) << "N01 to N30";
}

}  // namespace
}  // namespace rankrun::comm

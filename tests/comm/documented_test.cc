// docs/comm.md: each function of torch.distributed has tests and vectors that
// exist; each vector, and each test of what must fail, has a function.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace rankrun::comm {
namespace {

const std::filesystem::path kRoot = RANKRUN_SOURCE_DIR;

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::set<std::string> AllMatches(const std::string& text, const char* pattern,
                                 const std::string& format) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) {
    found.insert(i->format(format));
  }
  return found;
}

// The cells of each row of the section, but the headings'.
std::vector<std::vector<std::string>> Rows() {
  const std::string text = Read(kRoot / "docs/comm.md");
  const std::size_t begin = text.find("\n## What of torch.distributed there is\n");
  EXPECT_NE(begin, std::string::npos);
  std::istringstream lines(text.substr(begin, text.find("\n## ", begin + 1) - begin));
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ") || line.starts_with("| ---") || line.ends_with("| test |"))
      continue;
    std::istringstream cells(line.substr(2));
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '|');) rows.back().push_back(cell);
  }
  return rows;
}

std::set<std::string> KnownTests() {
  std::set<std::string> known;
  for (const char* folder : {"tests/comm", "tests/process"}) {
    for (const auto& file : std::filesystem::directory_iterator(kRoot / folder)) {
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

TEST(CommDocumentedTest, EachRowHasTestsThatExistOrSaysThatItIsNotThere) {
  const auto tests = KnownTests();
  const auto vectors = KnownVectors();
  ASSERT_GT(Rows().size(), 40U);
  for (const auto& row : Rows()) {
    ASSERT_EQ(row.size(), 3U) << row[0];
    const Named named = NamedIn(row[2]);
    const bool there = !row[1].starts_with(" not ");
    EXPECT_EQ(there, !named.tests.empty() || !named.vectors.empty()) << row[0];
    for (const auto& test : named.tests) EXPECT_TRUE(tests.contains(test)) << row[0] << test;
    for (const auto& id : named.vectors) EXPECT_TRUE(vectors.contains(id)) << row[0] << id;
  }
}

TEST(CommDocumentedTest, EachVectorAndEachNumberedTestHasARow) {
  Named named;
  for (const auto& row : Rows()) {
    Named here = NamedIn(row[2]);
    named.tests.merge(here.tests);
    named.vectors.merge(here.vectors);
  }
  EXPECT_EQ(named.vectors, KnownVectors());
  std::set<std::string> numbers;
  for (const std::string& test : KnownTests()) {
    if (!std::regex_search(test, std::regex(R"(\.N\d\d_)"))) continue;
    EXPECT_TRUE(named.tests.contains(test)) << test;
    numbers.insert(test.substr(test.find('.') + 1, 3));
  }
  EXPECT_EQ(numbers.size(), 30U) << "N01 to N30";
}

}  // namespace
}  // namespace rankrun::comm

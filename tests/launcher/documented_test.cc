#include <gtest/gtest.h>

#include <sstream>

#include "launcher/flags.h"
#include "tests/launcher/man_page.h"

namespace rankrun::launcher {
namespace {

TEST(DocumentedTest, TheManPageHasEveryFlagWithItsDefault) {
  std::vector<std::string> entries = OptionEntries(ReadSource("man/rankrun.1"));
  EXPECT_EQ(entries.size(), Flags().size());
  for (const Flag& flag : Flags()) ExpectEntry(flag, entries);
}

TEST(DocumentedTest, EachFolderHasAnOwnsAndANever) {
  std::istringstream lines(ReadSource("docs/architecture.md"));
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| `")) rows.push_back(line);
  }
  for (const std::string folder : {"base", "store", "comm", "agent", "launcher", "cli"}) {
    int found = 0;
    for (const std::string& row : rows) {
      if (!row.starts_with("| `" + folder + "/` | owns ")) continue;
      EXPECT_NE(row.find(" | never "), std::string::npos) << row;
      found += 1;
    }
    EXPECT_EQ(found, 1) << folder << "/ in docs/architecture.md";
  }
}

}  // namespace
}  // namespace rankrun::launcher

#include <gtest/gtest.h>

#include <set>

#include "cli/store_commands.h"
#include "tests/launcher/man_page.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;

TEST(DocumentedTest, RankctlsManPageHasEveryFlagWithItsDefault) {
  std::vector<std::string> entries = launcher::OptionEntries(launcher::ReadSource("man/rankctl.1"));
  std::set<std::string_view> names{"version"};  // the only one that no command has
  for (const Command& command : StoreCommands()) {
    for (const Flag& flag : command.flags) {
      launcher::ExpectEntry(flag, entries);
      names.insert(flag.name);
    }
  }
  EXPECT_EQ(entries.size(), names.size());
}

TEST(DocumentedTest, RankctlsManPageHasEveryCommandWithItsOperands) {
  std::string page = launcher::Shown(launcher::ReadSource("man/rankctl.1"));
  for (const Command& command : StoreCommands()) {
    std::string usage = std::string(command.title) + " [flags]";
    if (!command.operands.empty()) usage += " " + std::string(command.operands);
    EXPECT_NE(page.find(usage), std::string::npos) << usage;
  }
}

TEST(DocumentedTest, FlagsAreInTheTablesForm) {
  for (const Command& command : StoreCommands()) {
    std::set<std::string_view> names;
    for (const Flag& flag : command.flags) {
      EXPECT_TRUE(names.insert(flag.name).second) << command.title << " --" << flag.name;
      EXPECT_EQ(flag.name.find('_'), std::string_view::npos) << flag.name;
      EXPECT_EQ(flag.value == launcher::FlagValue::kNone, flag.value_name.empty()) << flag.name;
      EXPECT_TRUE(flag.help.ends_with('.')) << flag.name;
    }
    EXPECT_EQ(command.title, "rankctl store " + std::string(command.name));
    EXPECT_TRUE(names.contains("help")) << command.title;
  }
}

}  // namespace
}  // namespace rankrun::cli

#include <gtest/gtest.h>

#include <set>

#include "cli/man_page.h"
#include "cli/store_commands.h"
#include "launcher/flags/man_page.h"
#include "tests/launcher/flags/man_page.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;

TEST(DocumentedTest, ThePageOfRankctlHasThePartThatTheTablesGive) {
  EXPECT_EQ(launcher::GeneratedPartOf("rankctl.1"), RankctlManPart()) << "run scripts/man.sh";
}

TEST(DocumentedTest, EachFlagStandsWithItsCommandOrAmongTheSharedOnes) {
  std::string part = RankctlManPart();
  size_t options = part.find(".SH OPTIONS\n");
  ASSERT_NE(options, std::string::npos);
  for (const Command& command : StoreCommands()) {
    size_t begin = part.find(".SS " + std::string(command.title) + " [flags]");
    ASSERT_NE(begin, std::string::npos) << command.title;
    std::string section = part.substr(begin, part.find("\n.S", begin) - begin) + "\n";
    for (const Flag& flag : command.flags) {
      std::string entry = launcher::ManEntry(flag);
      std::string spellings = entry.substr(0, entry.find('\n', 4) + 1);
      bool is_own = section.find(entry) != std::string::npos;
      bool is_shared = part.find(spellings, options) != std::string::npos;
      EXPECT_TRUE(is_own || is_shared) << command.title << " --" << flag.name;
    }
  }
}

TEST(DocumentedTest, EachCommandOfRankctlItselfHasASection) {
  std::string part = RankctlManPart();
  for (const Command& command : TopCommands()) {
    EXPECT_EQ(command.title, "rankctl " + std::string(command.name));
    EXPECT_NE(part.find(".SS " + std::string(command.title) + " [flags]"), std::string::npos);
    EXPECT_TRUE(command.help.ends_with('.')) << command.title;
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

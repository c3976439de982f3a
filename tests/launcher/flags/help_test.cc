#include "launcher/flags/help.h"

#include <gtest/gtest.h>

#include <sstream>

#include "launcher/flags/flags.h"
#include "launcher/flags/marked_text.h"
#include "launcher/plan/command_line.h"

namespace rankrun::launcher {
namespace {

// Returns the text with each run of white space as one blank.
std::string Flowed(const std::string& text) {
  std::string flowed;
  for (char c : text) {
    bool blank = c == ' ' || c == '\n';
    if (!blank) {
      flowed += c;
    } else if (!flowed.ends_with(' ')) {
      flowed += ' ';
    }
  }
  return flowed;
}

TEST(HelpTest, ListsEveryFlagWithItsTextAndDefault) {
  std::string help = Flowed(HelpText(kRankrun));
  EXPECT_NE(help.find("Usage: rankrun [flags] program [arguments] "), std::string::npos);
  for (const Flag& flag : Flags()) {
    std::string entry = " --" + std::string(flag.name) + " ";
    if (flag.letter != 0) entry = std::string(" -") + flag.letter + "," + entry.substr(1);
    if (!flag.value_name.empty()) entry += std::string(flag.value_name) + " ";
    entry += PlainText(flag.help);
    if (!flag.default_value.empty()) entry += " Default: " + PlainText(flag.default_value) + ".";
    EXPECT_NE(help.find(entry), std::string::npos) << entry << "\nis not in\n" << help;
  }
}

TEST(HelpTest, NoLineIsWiderThanAHundredColumns) {
  std::istringstream lines(HelpText(kRankrun));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

TEST(HelpTest, UsageHasTheNameThatWasCalled) {
  EXPECT_NE(HelpText(kTorchrun).find("Usage: torchrun [flags] program"), std::string::npos);
}

TEST(HelpTest, FlagsStandUnderTheirHeadingsInOrder) {
  constexpr Flag kFlags[] = {
      {.name = "one",
       .letter = 'o',
       .value = FlagValue::kText,
       .value_name = "TEXT",
       .default_value = "`1`",
       .help = "The one, as in _TEXT_.",
       .details = "Only in the man page.",
       .group = "First"},
      {.name = "a-very-long-name-for-a-flag", .help = "Two.", .group = "Second"},
      {.name = "three", .help = "Three.", .group = "First"},
      {.name = "four", .help = "Four."},
  };
  EXPECT_EQ(FormatHelp({.command = "tool", .flags = kFlags}, "[flags]", "Does it."),
            "Does it.\n"
            "\n"
            "Usage: tool [flags]\n"
            "\n"
            "First:\n"
            "  -o,--one TEXT               The one, as in TEXT. Default: 1.\n"
            "  --three                     Three.\n"
            "\n"
            "Second:\n"
            "  --a-very-long-name-for-a-flag\n"
            "                              Two.\n"
            "\n"
            "Flags:\n"
            "  --four                      Four.\n");
}

}  // namespace
}  // namespace rankrun::launcher

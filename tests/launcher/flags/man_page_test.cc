#include "launcher/flags/man_page.h"

#include <gtest/gtest.h>

#include "tests/launcher/flags/man_page.h"

namespace rankrun::launcher {
namespace {

TEST(ManPageTest, AnEntryHasSpellingsTextDefaultAndVariables) {
  Flag flag{.name = "max-restarts",
            .letter = 'r',
            .value = FlagValue::kCount,
            .value_name = "N|none",
            .default_value = "0",
            .help = "Restart up to _N_ times.",
            .details = "See `--help`.\n\nA second paragraph.",
            .sources = FlagSources::kPet,
            .last_variable = "RESTARTS"};
  EXPECT_EQ(ManEntry(flag, "A note."),
            ".TP\n"
            "\\fB\\-r\\fR, \\fB\\-\\-max\\-restarts\\fR \\fIN\\fR|\\fBnone\\fR\n"
            "Restart up to \\fIN\\fR times. See \\fB\\-\\-help\\fR.\n"
            ".IP\n"
            "A second paragraph.\n"
            ".br\n"
            "Default: 0. Variables: RANKRUN_MAX_RESTARTS, PET_MAX_RESTARTS, RESTARTS. A note.\n");
}

TEST(ManPageTest, AnEntryOfASwitchIsShort) {
  EXPECT_EQ(ManEntry({.name = "version", .help = "Print the version."}),
            ".TP\n\\fB\\-\\-version\\fR\nPrint the version.\n");
}

TEST(ManPageTest, EveryKindOfValueNameIsSetInItsFonts) {
  auto head = [](std::string_view value_name) {
    std::string entry = ManEntry({.name = "f", .value_name = value_name, .help = "x"});
    size_t begin = std::string_view(".TP\n\\fB\\-\\-f\\fR ").size();
    return entry.substr(begin, entry.find('\n', begin) - begin);
  };
  EXPECT_EQ(head("NAME[=VALUE]"), "\\fINAME\\fR[=\\fIVALUE\\fR]");
  EXPECT_EQ(head("HOST[:PORT],..."), "\\fIHOST\\fR[:\\fIPORT\\fR],...");
  EXPECT_EQ(head("core-complex|2"), "\\fBcore\\-complex\\fR|\\fB2\\fR");
}

TEST(ManPageTest, GroupsHaveHeadingsUnlessThereIsOne) {
  constexpr Flag kFlags[] = {{.name = "a", .help = "A.", .group = "First"},
                             {.name = "b", .help = "B.", .group = "Second"},
                             {.name = "c", .help = "C.", .group = "First"}};
  EXPECT_EQ(ManEntries({.command = "tool", .flags = kFlags}),
            ".SS First\n"
            ".TP\n\\fB\\-\\-a\\fR\nA.\n"
            ".TP\n\\fB\\-\\-c\\fR\nC.\n"
            ".SS Second\n"
            ".TP\n\\fB\\-\\-b\\fR\nB.\n");
  EXPECT_EQ(ManEntries({.command = "tool", .flags = std::span(kFlags).first(1)}),
            ".TP\n\\fB\\-\\-a\\fR\nA.\n");
}

TEST(ManPageTest, ThePageOfRankrunHasThePartThatTheTableGives) {
  EXPECT_EQ(GeneratedPartOf("rankrun.1"), RankrunManPart()) << "run scripts/man.sh";
}

}  // namespace
}  // namespace rankrun::launcher

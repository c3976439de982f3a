#include "launcher/flag_parser.h"

#include <gtest/gtest.h>

namespace rankrun::launcher {
namespace {

using Words = std::vector<std::string>;

constexpr Flag kFlags[] = {
    {"host", 0, FlagValue::kText, 0, 0, "ADDR", "", false, "Where."},
    {"size", 's', FlagValue::kSize, 0, 0, "SIZE", "1K", false, "How much."},
    {"if", 0, FlagValue::kAnyText, 0, 0, "TEXT", "", false, "Any text."},
    {"json", 0, FlagValue::kNone, 0, 0, "", "", false, "A switch."},
    {"color", 0, FlagValue::kChoice, 0, 0, "WORD", "", false, "When.", "", "never|always|auto"},
};
constexpr FlagTable kTable{.command = "tool store", .flags = kFlags};

struct Parsed {
  ParsedFlags flags;
  Words words;
};

Parsed Parse(const Words& arguments, FlagsEnd end = FlagsEnd::kNowhere) {
  auto split = SplitFlags(kTable, end, arguments);
  EXPECT_TRUE(split) << split.error().message;
  if (!split) return {};
  auto flags = ParseFlags(kTable, split->flags);
  EXPECT_TRUE(flags) << flags.error().message;
  return flags ? Parsed{*flags, split->words} : Parsed{};
}

std::string ErrorOf(const Words& arguments) {
  auto split = SplitFlags(kTable, FlagsEnd::kNowhere, arguments);
  if (!split) return split.error().message;
  auto flags = ParseFlags(kTable, split->flags);
  return flags ? "accepted" : flags.error().message;
}

TEST(FlagParserTest, FlagsMayStandAmongTheWords) {
  Parsed parsed = Parse({"key", "--json", "value", "-s", "8K", "-", "-5", "--", "--json"});
  EXPECT_EQ(parsed.words, (Words{"key", "value", "-", "-5", "--json"}));
  EXPECT_TRUE(parsed.flags.Has("json"));
  EXPECT_EQ(parsed.flags.Size("size"), 8192U);
}

TEST(FlagParserTest, FlagsEndAtTheFirstWordWhereTheyMust) {
  for (FlagsEnd end : {FlagsEnd::kAtProgram, FlagsEnd::kAtCommand}) {
    Parsed parsed = Parse({"--json", "get", "--json", "-5", "--"}, end);
    EXPECT_EQ(parsed.words, (Words{"get", "--json", "-5", "--"}));
    EXPECT_EQ(Parse({"--", "get", "--", "-5"}, end).words, (Words{"get", "--", "-5"}));
  }
}

TEST(FlagParserTest, TwoDashesBehindTheFirstWordAreSwallowedOnlyIfItIsAProgram) {
  Words arguments{"get", "--", "-k", "--"};
  EXPECT_EQ(Parse(arguments, FlagsEnd::kAtProgram).words, (Words{"get", "-k", "--"}));
  EXPECT_EQ(Parse(arguments, FlagsEnd::kAtCommand).words, arguments);
}

TEST(FlagParserTest, AllValuesOfAFlagAreThereAndTheLastCounts) {
  Parsed parsed = Parse({"--host", "a", "--host=b", "--host", "[c,d]"});
  EXPECT_EQ(parsed.flags.Texts("host"), (Words{"a", "b", "[c,d]"}));
  EXPECT_EQ(parsed.flags.Text("host"), "[c,d]");
  EXPECT_EQ(parsed.flags.Text("if"), std::nullopt);
  EXPECT_EQ(parsed.flags.Texts("if"), Words{});
}

TEST(FlagParserTest, AnyTextMayBeEmpty) {
  for (const char* value : {"", "-", "{}", "[]", "=", "a b", "\"x\""}) {
    EXPECT_EQ(Parse({"--if", value, "k"}).flags.Text("if"), value);
    EXPECT_EQ(Parse({"k", "--if=" + std::string(value)}).flags.Text("if"), value);
    EXPECT_EQ(Parse({"--if", value, "k", "--json"}).words, Words{"k"});
  }
  EXPECT_EQ(ErrorOf({"--host", ""}), "--host needs a value (ADDR)");
  EXPECT_EQ(ErrorOf({"--if"}), "--if needs a value (TEXT)");
}

TEST(FlagParserTest, SizesHaveBinaryUnits) {
  EXPECT_EQ(ParseSize("512"), 512U);
  EXPECT_EQ(ParseSize("8K"), 8U << 10);
  EXPECT_EQ(ParseSize("64M"), 64U << 20);
  EXPECT_EQ(ParseSize("3G"), uint64_t{3} << 30);
  EXPECT_EQ(ParseSize("1T"), uint64_t{1} << 40);
  EXPECT_EQ(ParseSize("16777215T"), uint64_t{16777215} << 40);
}

TEST(FlagParserTest, WhatIsNoSizeIsRefused) {
  for (const char* bad : {"0", "0K", "-1", "+1", "1.5G", "K", "8k", "8KB", "8KiB", "8 K", " 8",
                          "16777216T", "18446744073709551616", "all"}) {
    EXPECT_EQ(ErrorOf({"--size=" + std::string(bad)}),
              "--size: want a size, as 512, 8K, 64M, 1G or 2T, got \"" + std::string(bad) + '"');
  }
}

TEST(FlagParserTest, AChoiceIsOneOfItsWords) {
  for (const char* choice : {"never", "always", "auto"}) {
    EXPECT_EQ(Parse({"--color", choice}).flags.Text("color"), choice);
  }
  std::string wanted = "--color: want never, always or auto, got ";
  EXPECT_EQ(ErrorOf({"--color=nevr"}), wanted + "\"nevr\"; did you mean never?");
  EXPECT_EQ(ErrorOf({"--color=sometimes"}), wanted + "\"sometimes\"");
  EXPECT_EQ(ErrorOf({"--color="}), "--color needs a value (WORD)");
}

TEST(FlagParserTest, AnUnknownFlagIsNamedWithTheNearestOne) {
  EXPECT_EQ(ErrorOf({"key", "--jsn"}), "unknown flag --jsn; did you mean --json?");
  EXPECT_EQ(ErrorOf({"--quite-another"}),
            "unknown flag --quite-another; tool store --help lists all");
  EXPECT_EQ(ErrorOf({"-x"}), "unknown flag -x in \"-x\"; tool store --help lists all");
}

TEST(FlagParserTest, FewSecondsAreNotNone) {
  auto read = [](const std::string& text) {
    ParsedFlags::Values values = {{"timeout", {text}}};
    return ParsedFlags(std::move(values)).Seconds("timeout");
  };
  EXPECT_EQ(read("0.0001"), std::chrono::milliseconds(1));
  EXPECT_EQ(read("0"), std::chrono::milliseconds(0));
  EXPECT_EQ(read("0.0016"), std::chrono::milliseconds(2));
}

}  // namespace
}  // namespace rankrun::launcher

#include "launcher/flags/flag_parser.h"

#include <gtest/gtest.h>

namespace rankrun::launcher {
namespace {

using Words = std::vector<std::string>;

constexpr Flag kFlags[] = {
    {.name = "host", .value = FlagValue::kText, .value_name = "ADDR"},
    {.name = "size", .letter = 's', .value = FlagValue::kSize, .value_name = "SIZE"},
    {.name = "if", .value = FlagValue::kText, .value_name = "TEXT", .may_be_empty = true},
    {.name = "json"},
    {.name = "color",
     .value = FlagValue::kChoice,
     .choices = "never|always|auto",
     .value_name = "WORD"},
};
constexpr FlagTable kTable{.command = "tool store", .flags = kFlags};

Arguments Parse(const Words& words, FlagsEnd end = FlagsEnd::kNowhere) {
  auto arguments = ParseArguments(kTable, end, words);
  EXPECT_TRUE(arguments) << arguments.error().message;
  return arguments ? *arguments : Arguments{};
}

std::string ErrorOf(const Words& words) {
  auto arguments = ParseArguments(kTable, FlagsEnd::kNowhere, words);
  return arguments ? "accepted" : arguments.error().message;
}

TEST(FlagParserTest, FlagsMayStandAmongThePositionals) {
  Arguments parsed = Parse({"key", "--json", "value", "-s", "8K", "-", "-5", "--", "--json"});
  EXPECT_EQ(parsed.positionals, (Words{"key", "value", "-", "-5", "--json"}));
  EXPECT_TRUE(parsed.flags.Has("json"));
  EXPECT_EQ(parsed.flags.Size("size"), 8192U);
}

TEST(FlagParserTest, FlagsEndAtTheProgramOrCommand) {
  for (FlagsEnd end : {FlagsEnd::kAtProgram, FlagsEnd::kAtCommand}) {
    Arguments parsed = Parse({"--json", "get", "--json", "-5", "--"}, end);
    EXPECT_EQ(parsed.positionals, (Words{"get", "--json", "-5", "--"}));
    EXPECT_EQ(Parse({"--", "get", "--", "-5"}, end).positionals, (Words{"get", "--", "-5"}));
  }
}

TEST(FlagParserTest, TwoDashesAfterTheFirstPositionalAreDroppedOnlyIfItIsAProgram) {
  Words arguments{"get", "--", "-k", "--"};
  EXPECT_EQ(Parse(arguments, FlagsEnd::kAtProgram).positionals, (Words{"get", "-k", "--"}));
  EXPECT_EQ(Parse(arguments, FlagsEnd::kAtCommand).positionals, arguments);
}

TEST(FlagParserTest, ARepeatedFlagKeepsAllValuesAndTheLastCounts) {
  Arguments parsed = Parse({"--host", "a", "--host=b", "--host", "[c,d]"});
  EXPECT_EQ(parsed.flags.Texts("host"), (Words{"a", "b", "[c,d]"}));
  EXPECT_EQ(parsed.flags.Text("host"), "[c,d]");
  EXPECT_EQ(parsed.flags.Text("if"), std::nullopt);
  EXPECT_EQ(parsed.flags.Texts("if"), Words{});
}

TEST(FlagParserTest, ATextMayBeEmptyIfTheFlagSaysSo) {
  for (const char* value : {"", "-", "{}", "[]", "=", "a b", "\"x\""}) {
    EXPECT_EQ(Parse({"--if", value, "k"}).flags.Text("if"), value);
    EXPECT_EQ(Parse({"k", "--if=" + std::string(value)}).flags.Text("if"), value);
    EXPECT_EQ(Parse({"--if", value, "k", "--json"}).positionals, Words{"k"});
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

TEST(FlagParserTest, InvalidSizesAreRefused) {
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

TEST(FlagParserTest, SecondsAreRoundedButNeverToZero) {
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

#include "launcher/flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace rankrun::launcher {
namespace {

using Words = std::vector<std::string>;

SplitArguments Split(const Words& words) {
  auto split = SplitCommandLine(words);
  EXPECT_TRUE(split) << split.error().message;
  return split ? *split : SplitArguments{};
}

std::string ErrorOf(const Words& words) {
  auto split = SplitCommandLine(words);
  EXPECT_FALSE(split);
  if (split) return "accepted";
  EXPECT_EQ(split.error().code, ErrorCode::kInvalid);
  return split.error().message;
}

std::string Underscored(std::string text) {
  std::ranges::replace(text, '-', '_');
  return text;
}

// A value that each kind of flag accepts.
std::string SampleOf(const Flag& flag) {
  switch (flag.value) {
    case FlagValue::kNone:
      return "";
    case FlagValue::kCount:
    case FlagValue::kPort:
      return "7";
    case FlagValue::kSeconds:
      return "1.5";
    case FlagValue::kSize:
      return "64M";
    case FlagValue::kText:
    case FlagValue::kAnyText:
      return "text";
  }
  return "";
}

TEST(FlagsTest, NamesAndLettersAreUniqueAndInTheTablesForm) {
  std::set<std::string_view> names;
  std::set<char> letters;
  for (const Flag& flag : Flags()) {
    EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
    EXPECT_TRUE(flag.letter == 0 || letters.insert(flag.letter).second) << flag.name;
    EXPECT_EQ(flag.name.find('_'), std::string_view::npos) << flag.name;
    EXPECT_EQ(flag.value == FlagValue::kNone, flag.value_name.empty()) << flag.name;
    EXPECT_TRUE(flag.help.ends_with('.')) << flag.name;
  }
}

TEST(FlagsTest, EveryFlagIsAcceptedInEachOfItsSpellings) {
  for (const Flag& flag : Flags()) {
    std::string name(flag.name);
    std::string value = SampleOf(flag);
    std::vector<Words> spellings;
    for (const std::string& spelled : {"--" + name, "--" + Underscored(name)}) {
      if (value.empty()) {
        spellings.push_back({spelled});
      } else {
        spellings.push_back({spelled, value});
        spellings.push_back({spelled + "=" + value});
      }
    }
    std::string letter = std::string("-") + flag.letter;
    if (flag.letter != 0 && value.empty()) spellings.push_back({letter});
    if (flag.letter != 0 && !value.empty()) {
      spellings.insert(spellings.end(),
                       {{letter, value}, {letter + value}, {letter + "=" + value}});
    }
    std::string canonical = "--" + name + (value.empty() ? "" : "=" + value);
    for (Words words : spellings) {
      words.push_back("train.py");
      SplitArguments split = Split(words);
      EXPECT_EQ(split.flags, Words{canonical}) << words[0];
      EXPECT_EQ(split.words, Words{"train.py"}) << words[0];
    }
  }
}

TEST(FlagsTest, MixedSpellingsAreOneFlag) {
  EXPECT_EQ(Split({"--nproc-per_node=2", "x"}).flags, Words{"--nproc-per-node=2"});
}

TEST(FlagsTest, LettersMayBeInAClusterWithAValueAtItsEnd) {
  EXPECT_EQ(Split({"-mn4", "mod"}).flags, (Words{"--module", "--nproc-per-node=4"}));
  EXPECT_EQ(Split({"-mn", "4", "mod"}).flags, (Words{"--module", "--nproc-per-node=4"}));
  EXPECT_EQ(Split({"-mn=4", "mod"}).flags, (Words{"--module", "--nproc-per-node=4"}));
  EXPECT_EQ(Split({"-mh"}).flags, (Words{"--module", "--help"}));
}

TEST(FlagsTest, TheProgramBeginsAtTheFirstWordThatIsNoFlag) {
  SplitArguments split = Split({"-n", "4", "train.py", "--lr", "0.1", "-n", "9"});
  EXPECT_EQ(split.flags, Words{"--nproc-per-node=4"});
  EXPECT_EQ(split.words, (Words{"train.py", "--lr", "0.1", "-n", "9"}));
}

TEST(FlagsTest, AUnderscoreInAValueStays) {
  EXPECT_EQ(Split({"--master_addr=my_host", "x"}).flags, Words{"--master-addr=my_host"});
  EXPECT_EQ(Split({"--master_addr=a=b", "x"}).flags, Words{"--master-addr=a=b"});
}

TEST(FlagsTest, NothingGivenIsNothing) {
  EXPECT_EQ(Split({}).flags, Words{});
  EXPECT_EQ(Split({}).words, Words{});
}

TEST(FlagsTest, ADashAloneAndAnEmptyWordAreNoFlags) {
  EXPECT_EQ(Split({"-", "x"}).words, (Words{"-", "x"}));
  EXPECT_EQ(Split({"", "x"}).words, (Words{"", "x"}));
}

TEST(FlagsTest, TheFirstTwoDashesAreSwallowed) {
  EXPECT_EQ(Split({"-n2", "--", "train.py", "a"}).words, (Words{"train.py", "a"}));
  EXPECT_EQ(Split({"train.py", "--", "a"}).words, (Words{"train.py", "a"}));
  EXPECT_EQ(Split({"--"}).words, Words{});
}

TEST(FlagsTest, OnlyTheFirstTwoDashesAreSwallowed) {
  EXPECT_EQ(Split({"--", "train.py", "--", "a"}).words, (Words{"train.py", "--", "a"}));
  EXPECT_EQ(Split({"--", "--", "a"}).words, (Words{"--", "a"}));
  EXPECT_EQ(Split({"train.py", "--", "--", "a"}).words, (Words{"train.py", "--", "a"}));
  EXPECT_EQ(Split({"train.py", "a", "--"}).words, (Words{"train.py", "a", "--"}));
}

TEST(FlagsTest, AfterTwoDashesAFlagIsTheProgram) {
  EXPECT_EQ(Split({"--", "-n", "4"}).words, (Words{"-n", "4"}));
}

TEST(FlagsTest, AMissingValueIsSaid) {
  std::string needs = "--nproc-per-node needs a value (N)";
  EXPECT_EQ(ErrorOf({"--nproc-per-node"}), needs);
  EXPECT_EQ(ErrorOf({"--nproc-per-node="}), needs);
  EXPECT_EQ(ErrorOf({"--nproc-per-node=", "4", "x"}), needs);
  EXPECT_EQ(ErrorOf({"-n"}), needs);
  EXPECT_EQ(ErrorOf({"-n=", "4", "x"}), needs);
  EXPECT_EQ(ErrorOf({"-n", "--standalone", "x"}), needs);
  EXPECT_EQ(ErrorOf({"-n", "--", "x"}), needs);
  EXPECT_EQ(ErrorOf({"--master-addr", "", "x"}), "--master-addr needs a value (ADDRESS)");
}

TEST(FlagsTest, ASwitchTakesNoValue) {
  EXPECT_EQ(ErrorOf({"--standalone=yes", "x"}), "--standalone takes no value, got \"yes\"");
  EXPECT_EQ(ErrorOf({"--no_python=", "x"}), "--no-python takes no value, got \"\"");
}

TEST(FlagsTest, AnUnknownFlagGetsTheNearestName) {
  EXPECT_EQ(ErrorOf({"--max-restart=3", "x"}),
            "unknown flag --max-restart; did you mean --max-restarts?");
  EXPECT_EQ(ErrorOf({"--nproc_pernode", "2", "x"}),
            "unknown flag --nproc-pernode; did you mean --nproc-per-node?");
  EXPECT_EQ(ErrorOf({"--hepl"}), "unknown flag --hepl; did you mean --help?");
  EXPECT_EQ(ErrorOf({"--modul", "x"}), "unknown flag --modul; did you mean --module?");
}

TEST(FlagsTest, TheBeginningOfAFlagGetsItsWholeName) {
  EXPECT_EQ(ErrorOf({"--max", "3", "x"}), "unknown flag --max; did you mean --max-restarts?");
  EXPECT_EQ(ErrorOf({"--nproc=2", "x"}), "unknown flag --nproc; did you mean --nproc-per-node?");
}

TEST(FlagsTest, AFlagLikeNoOtherGetsNoHint) {
  EXPECT_EQ(ErrorOf({"--frobnicate", "x"}), "unknown flag --frobnicate; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"--=4", "x"}), "unknown flag --; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"-x", "x"}), "unknown flag -x in \"-x\"; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"-mx", "x"}), "unknown flag -x in \"-mx\"; rankrun --help lists all");
}

// Every flag of the table of torchrun's specification that is not ours yet.
TEST(FlagsTest, FlagsThatOnlyTorchrunHasAreRefusedByName) {
  const char* const names[] = {"nnodes",
                               "rdzv-backend",
                               "rdzv-endpoint",
                               "rdzv-id",
                               "rdzv-conf",
                               "role",
                               "node-rank",
                               "monitor-interval",
                               "start-method",
                               "event-log-handler",
                               "run-path",
                               "log-dir",
                               "redirects",
                               "tee",
                               "local-ranks-filter",
                               "local-addr",
                               "logs-specs",
                               "virtual-local-rank",
                               "numa-binding",
                               "duplicate-stdout-filters",
                               "duplicate-stderr-filters"};
  for (const std::string name : names) {
    std::string refusal = "--" + name + ": this flag of torchrun is not supported yet";
    EXPECT_EQ(ErrorOf({"--" + name, "1", "x"}), refusal);
    EXPECT_EQ(ErrorOf({"--" + Underscored(name) + "=1", "x"}), refusal);
  }
}

TEST(FlagsTest, TheSameFlagMayComeTwice) {
  EXPECT_EQ(Split({"-n1", "-n2", "x"}).flags, (Words{"--nproc-per-node=1", "--nproc-per-node=2"}));
}

}  // namespace
}  // namespace rankrun::launcher

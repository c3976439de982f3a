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
    case FlagValue::kFile:
    case FlagValue::kFolder:
      return "text";
    case FlagValue::kChoice:
      return std::string(flag.choices.substr(0, flag.choices.find('|')));
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
  std::string needs = "--nproc-per-node needs a value (N|auto|cpu|gpu)";
  EXPECT_EQ(ErrorOf({"--nproc-per-node"}), needs);
  EXPECT_EQ(ErrorOf({"--nproc-per-node="}), needs);
  EXPECT_EQ(ErrorOf({"--nproc-per-node=", "4", "x"}), needs);
  EXPECT_EQ(ErrorOf({"-n"}), needs);
  EXPECT_EQ(ErrorOf({"-n=", "4", "x"}), needs);
  EXPECT_EQ(ErrorOf({"-n", "--standalone", "x"}), needs);
  EXPECT_EQ(ErrorOf({"-n", "--", "x"}), needs);
  EXPECT_EQ(ErrorOf({"--master-addr", "", "x"}), "--master-addr needs a value (ADDRESS)");
}

TEST(FlagsTest, ASwitchMayBeTurnedOff) {
  EXPECT_EQ(Split({"--standalone=yes", "--no_python=0", "x"}).flags,
            (Words{"--standalone=true", "--no-python=false"}));
  EXPECT_EQ(ErrorOf({"--no_python=", "x"}),
            "--no-python: want 1, true or yes, or 0, false or no, got \"\"");
  EXPECT_EQ(ErrorOf({"--help=no"}), "--help takes no value, got \"no\"");
}

TEST(FlagsTest, AnUnknownFlagGetsTheNearestName) {
  EXPECT_EQ(ErrorOf({"--max-restars=3", "x"}),
            "unknown flag --max-restars; did you mean --max-restarts?");
  EXPECT_EQ(ErrorOf({"--nproc_pernode", "2", "x"}),
            "unknown flag --nproc-pernode; did you mean --nproc-per-node?");
  EXPECT_EQ(ErrorOf({"--hepl"}), "unknown flag --hepl; did you mean --help?");
  EXPECT_EQ(ErrorOf({"--log-directory", "x"}),
            "unknown flag --log-directory; did you mean --log-dir?")
      << "a common start";
  EXPECT_EQ(ErrorOf({"--bnid", "x"}), "unknown flag --bnid; did you mean --bind?");
  EXPECT_EQ(ErrorOf({"--exit", "x"}), "unknown flag --exit; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"--modules", "x"}), "unknown flag --modules; did you mean --module?");
}

// The flags of torchrun's specification, and no others, count as its own.
TEST(FlagsTest, AllFlagsOfTorchrunAreThere) {
  const std::set<std::string_view> wanted = {"nnodes",
                                             "nproc-per-node",
                                             "rdzv-backend",
                                             "rdzv-endpoint",
                                             "rdzv-id",
                                             "rdzv-conf",
                                             "standalone",
                                             "max-restarts",
                                             "monitor-interval",
                                             "start-method",
                                             "event-log-handler",
                                             "role",
                                             "module",
                                             "no-python",
                                             "run-path",
                                             "log-dir",
                                             "redirects",
                                             "tee",
                                             "local-ranks-filter",
                                             "duplicate-stdout-filters",
                                             "duplicate-stderr-filters",
                                             "node-rank",
                                             "master-addr",
                                             "master-port",
                                             "local-addr",
                                             "logs-specs",
                                             "numa-binding",
                                             "signals-to-handle",
                                             "shutdown-timeout",
                                             "virtual-local-rank",
                                             "help"};
  const std::set<std::string_view> without_pet = {"logs-specs", "numa-binding", "help"};
  std::set<std::string_view> found;
  for (const Flag& flag : Flags()) {
    if (flag.from_torchrun) found.insert(flag.name);
    bool pet = wanted.contains(flag.name) && !without_pet.contains(flag.name);
    EXPECT_EQ(flag.elsewhere == Elsewhere::kPet, pet) << flag.name;
  }
  EXPECT_EQ(found, wanted);
}

// The flags of torchrun that begin with `typed`.
std::vector<std::string> Beginning(const std::string& typed) {
  std::vector<std::string> names;
  for (const Flag& flag : Flags()) {
    if (flag.from_torchrun && flag.name.starts_with(typed)) names.emplace_back(flag.name);
  }
  return names;
}

// Every beginning of every flag of torchrun.
TEST(FlagsTest, AFlagOfTorchrunMayBeCutShortAsLongAsItIsOne) {
  for (const Flag& flag : Flags()) {
    if (!flag.from_torchrun) continue;
    for (size_t length = 1; length < flag.name.size(); ++length) {
      std::string typed(flag.name.substr(0, length));
      auto exact = std::ranges::find(Flags(), typed, &Flag::name);
      if (exact != Flags().end()) continue;  // a whole name: that flag
      std::string value = SampleOf(flag);
      std::string canonical = "--" + std::string(flag.name) + (value.empty() ? "" : "=" + value);
      for (const std::string& spelled : {typed, Underscored(typed)}) {
        Words words = {"--" + spelled + (value.empty() ? "" : "=" + value), "x"};
        if (Beginning(typed).size() == 1) {
          EXPECT_EQ(Split(words).flags, Words{canonical}) << typed;
        } else {
          EXPECT_TRUE(ErrorOf(words).starts_with("--" + typed + " may be --")) << typed;
        }
      }
    }
  }
}

TEST(FlagsTest, ABeginningOfSeveralFlagsNamesThemAll) {
  EXPECT_EQ(ErrorOf({"--log", "x"}), "--log may be --log-dir or --logs-specs");
  EXPECT_EQ(ErrorOf({"--rdzv_=c10d", "x"}),
            "--rdzv- may be --rdzv-backend, --rdzv-endpoint, --rdzv-id or --rdzv-conf");
}

TEST(FlagsTest, TheBeginningsThatScriptsUse) {
  EXPECT_EQ(Split({"--redirect=3", "x"}).flags, Words{"--redirects=3"});
  EXPECT_EQ(Split({"--nproc-p", "2", "x"}).flags, Words{"--nproc-per-node=2"});
  EXPECT_EQ(Split({"--nproc=2", "x"}).flags, Words{"--nproc-per-node=2"});
  EXPECT_EQ(Split({"--standalon", "x"}).flags, Words{"--standalone"});
  EXPECT_EQ(Split({"--max", "3", "x"}).flags, Words{"--max-restarts=3"});
  EXPECT_EQ(Split({"-mt3", "x"}).flags, (Words{"--module", "--tee=3"}));
}

TEST(FlagsTest, AFlagOfOurOwnIsNeverCutShort) {
  EXPECT_EQ(ErrorOf({"--explai", "x"}), "unknown flag --explai; did you mean --explain?");
  EXPECT_EQ(ErrorOf({"--time", "5", "x"}), "unknown flag --time; did you mean --timeout?");
}

TEST(FlagsTest, AWholeNameOfOursWinsOverABeginningOfTorchruns) {
  EXPECT_EQ(Split({"--env", "A", "x"}).flags, Words{"--env=A"});
  EXPECT_EQ(Split({"--events", "f", "x"}).flags, Words{"--events=f"});
  EXPECT_EQ(Split({"--event=null", "x"}).flags, Words{"--event-log-handler=null"});
}

TEST(FlagsTest, UnderAnotherNameTheHintNamesIt) {
  auto split = SplitCommandLine(Words{"--frobnicate"}, kTorchrun);
  EXPECT_EQ(split.error().message, "unknown flag --frobnicate; torchrun --help lists all");
}

TEST(FlagsTest, AFlagLikeNoOtherGetsNoHint) {
  EXPECT_EQ(ErrorOf({"--frobnicate", "x"}), "unknown flag --frobnicate; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"--=4", "x"}), "unknown flag --; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"-z", "x"}), "unknown flag -z in \"-z\"; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"-mz", "x"}), "unknown flag -z in \"-mz\"; rankrun --help lists all");
}

TEST(FlagsTest, TheSameFlagMayComeTwice) {
  EXPECT_EQ(Split({"-n1", "-n2", "x"}).flags, (Words{"--nproc-per-node=1", "--nproc-per-node=2"}));
}

}  // namespace
}  // namespace rankrun::launcher

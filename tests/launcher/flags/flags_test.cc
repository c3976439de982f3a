#include "launcher/flags/flags.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "launcher/flags/flag_parser.h"

namespace rankrun::launcher {
namespace {

using Words = std::vector<std::string>;

// Arguments in one spelling: the flags as in the table, sorted by name.
struct Spelled {
  Words flags;
  Words positionals;
};

Spelled Parse(const Words& words) {
  auto arguments = ParseArguments(RankrunFlags(), FlagsEnd::kAtProgram, words);
  EXPECT_TRUE(arguments) << arguments.error().message;
  if (!arguments) return {};
  Spelled spelled{.flags = {}, .positionals = arguments->positionals};
  for (const Flag& flag : Flags()) {
    for (const std::string& value : arguments->flags.Texts(flag.name)) {
      bool is_plain_switch = flag.value == FlagValue::kNone && value == "true";
      spelled.flags.push_back("--" + std::string(flag.name) + (is_plain_switch ? "" : "=" + value));
    }
  }
  std::ranges::stable_sort(spelled.flags, {},
                           [](auto& text) { return text.substr(0, text.find('=')); });
  return spelled;
}

std::string ErrorOf(const Words& words) {
  auto arguments = ParseArguments(RankrunFlags(), FlagsEnd::kAtProgram, words);
  EXPECT_FALSE(arguments);
  if (arguments) return "accepted";
  EXPECT_EQ(arguments.error().code, ErrorCode::kInvalid);
  return arguments.error().message;
}

std::string Underscored(std::string text) {
  std::ranges::replace(text, '-', '_');
  return text;
}

// Returns a value that the flag accepts.
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
      Spelled spelled = Parse(words);
      EXPECT_EQ(spelled.flags, Words{canonical}) << words[0];
      EXPECT_EQ(spelled.positionals, Words{"train.py"}) << words[0];
    }
  }
}

TEST(FlagsTest, MixedSpellingsAreOneFlag) {
  EXPECT_EQ(Parse({"--nproc-per_node=2", "x"}).flags, Words{"--nproc-per-node=2"});
}

TEST(FlagsTest, LettersMayBeInAClusterWithAValueAtItsEnd) {
  EXPECT_EQ(Parse({"-mn4", "mod"}).flags, (Words{"--module", "--nproc-per-node=4"}));
  EXPECT_EQ(Parse({"-mn", "4", "mod"}).flags, (Words{"--module", "--nproc-per-node=4"}));
  EXPECT_EQ(Parse({"-mn=4", "mod"}).flags, (Words{"--module", "--nproc-per-node=4"}));
  EXPECT_EQ(Parse({"-mh"}).flags, (Words{"--help", "--module"}));
}

TEST(FlagsTest, TheProgramBeginsAtTheFirstWordThatIsNoFlag) {
  Spelled spelled = Parse({"-n", "4", "train.py", "--lr", "0.1", "-n", "9"});
  EXPECT_EQ(spelled.flags, Words{"--nproc-per-node=4"});
  EXPECT_EQ(spelled.positionals, (Words{"train.py", "--lr", "0.1", "-n", "9"}));
}

TEST(FlagsTest, FlagsOfTheProgramStayAsTheyAre) {
  Words program = {"train.py", "--max_restarts=3", "--role=", "--tee", "-n=4", "--log=x", "--"};
  EXPECT_EQ(Parse(program).positionals, program);
  EXPECT_EQ(Parse(program).flags, Words{});
}

TEST(FlagsTest, OnlyAnAttachedValueMayBeginWithTwoDashes) {
  EXPECT_EQ(Parse({"--role=--x", "x"}).flags, Words{"--role=--x"});
  EXPECT_EQ(Parse({"--role", "-x", "x"}).flags, Words{"--role=-x"});
  EXPECT_EQ(ErrorOf({"--role", "--x", "x"}), "--role needs a value (NAME)");
}

TEST(FlagsTest, AUnderscoreInAValueStays) {
  EXPECT_EQ(Parse({"--master_addr=my_host", "x"}).flags, Words{"--master-addr=my_host"});
  EXPECT_EQ(Parse({"--master_addr=a=b", "x"}).flags, Words{"--master-addr=a=b"});
}

TEST(FlagsTest, AnEmptyCommandLineHasNoFlags) {
  EXPECT_EQ(Parse({}).flags, Words{});
  EXPECT_EQ(Parse({}).positionals, Words{});
}

TEST(FlagsTest, ADashAloneAndAnEmptyWordAreNoFlags) {
  EXPECT_EQ(Parse({"-", "x"}).positionals, (Words{"-", "x"}));
  EXPECT_EQ(Parse({"", "x"}).positionals, (Words{"", "x"}));
}

TEST(FlagsTest, TheFirstTwoDashesAreSwallowed) {
  EXPECT_EQ(Parse({"-n2", "--", "train.py", "a"}).positionals, (Words{"train.py", "a"}));
  EXPECT_EQ(Parse({"train.py", "--", "a"}).positionals, (Words{"train.py", "a"}));
  EXPECT_EQ(Parse({"--"}).positionals, Words{});
}

TEST(FlagsTest, OnlyTheFirstTwoDashesAreSwallowed) {
  EXPECT_EQ(Parse({"--", "train.py", "--", "a"}).positionals, (Words{"train.py", "--", "a"}));
  EXPECT_EQ(Parse({"--", "--", "a"}).positionals, (Words{"--", "a"}));
  EXPECT_EQ(Parse({"train.py", "--", "--", "a"}).positionals, (Words{"train.py", "--", "a"}));
  EXPECT_EQ(Parse({"train.py", "a", "--"}).positionals, (Words{"train.py", "a", "--"}));
}

TEST(FlagsTest, AfterTwoDashesAFlagIsTheProgram) {
  EXPECT_EQ(Parse({"--", "-n", "4"}).positionals, (Words{"-n", "4"}));
}

TEST(FlagsTest, AMissingValueIsAnError) {
  std::string needs = "--nproc-per-node needs a value (N|auto|cpu|gpu)";
  EXPECT_EQ(ErrorOf({"--nproc-per-node"}), needs);
  EXPECT_EQ(ErrorOf({"--nproc-per-node="}), needs);
  EXPECT_EQ(ErrorOf({"--nproc-per-node=", "4", "x"}), needs);
  EXPECT_EQ(ErrorOf({"-n"}), needs);
  EXPECT_EQ(ErrorOf({"-n=", "4", "x"}), needs);
  EXPECT_EQ(ErrorOf({"-n", "--standalone", "x"}), needs);
  EXPECT_EQ(ErrorOf({"-n", "--", "x"}), needs);
  EXPECT_EQ(ErrorOf({"--timeout", "", "x"}), "--timeout needs a value (SECONDS)");
}

TEST(FlagsTest, TextsThatTorchrunAcceptsMayBeEmpty) {
  for (std::string flag : {"--role", "--master-addr", "--local-addr", "--log-dir"}) {
    EXPECT_EQ(Parse({flag, "", "x"}).flags, Words{flag + "="});
    EXPECT_EQ(Parse({flag + "=", "x"}).flags, Words{flag + "="});
  }
  EXPECT_EQ(ErrorOf({"--chdir", "", "x"}), "--chdir needs a value (FOLDER)");
}

TEST(FlagsTest, ASwitchMayBeTurnedOff) {
  EXPECT_EQ(Parse({"--standalone=yes", "--no_python=0", "x"}).flags,
            (Words{"--no-python=false", "--standalone"}));
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
  std::set<std::string_view> wanted = {"nnodes",
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
                                       "log-line-prefix-template",
                                       "print-completion",
                                       "numa-binding",
                                       "signals-to-handle",
                                       "shutdown-timeout",
                                       "virtual-local-rank",
                                       "help"};
  std::set<std::string_view> without_pet = {"logs-specs", "numa-binding", "print-completion",
                                            "help"};
  std::set<std::string_view> found;
  for (const Flag& flag : Flags()) {
    if (flag.from_torchrun) found.insert(flag.name);
    bool pet = wanted.contains(flag.name) && !without_pet.contains(flag.name);
    EXPECT_EQ(flag.sources == FlagSources::kPet, pet) << flag.name;
  }
  EXPECT_EQ(found, wanted);
}

// Returns the names of torchrun's flags that begin with `typed`.
std::vector<std::string> Beginning(const std::string& typed) {
  std::vector<std::string> names;
  for (const Flag& flag : Flags()) {
    if (flag.from_torchrun && flag.name.starts_with(typed)) names.emplace_back(flag.name);
  }
  return names;
}

// Tests every beginning of every flag of torchrun.
TEST(FlagsTest, AFlagOfTorchrunMayBeAbbreviatedIfUnambiguous) {
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
          EXPECT_EQ(Parse(words).flags, Words{canonical}) << typed;
        } else {
          EXPECT_TRUE(ErrorOf(words).starts_with("--" + typed + " is ambiguous: --")) << typed;
        }
      }
    }
  }
}

TEST(FlagsTest, AnAmbiguousAbbreviationNamesAllFlags) {
  EXPECT_EQ(ErrorOf({"--log", "x"}),
            "--log is ambiguous: --log-line-prefix-template, --log-dir or --logs-specs");
  EXPECT_EQ(ErrorOf({"--rdzv_=c10d", "x"}),
            "--rdzv- is ambiguous: --rdzv-backend, --rdzv-endpoint, --rdzv-id or --rdzv-conf");
}

TEST(FlagsTest, CommonAbbreviationsAreAccepted) {
  EXPECT_EQ(Parse({"--redirect=3", "x"}).flags, Words{"--redirects=3"});
  EXPECT_EQ(Parse({"--nproc-p", "2", "x"}).flags, Words{"--nproc-per-node=2"});
  EXPECT_EQ(Parse({"--nproc=2", "x"}).flags, Words{"--nproc-per-node=2"});
  EXPECT_EQ(Parse({"--standalon", "x"}).flags, Words{"--standalone"});
  EXPECT_EQ(Parse({"--max", "3", "x"}).flags, Words{"--max-restarts=3"});
  EXPECT_EQ(Parse({"-mt3", "x"}).flags, (Words{"--module", "--tee=3"}));
}

TEST(FlagsTest, AFlagOfOurOwnIsNeverAbbreviated) {
  EXPECT_EQ(ErrorOf({"--explai", "x"}), "unknown flag --explai; did you mean --explain?");
  EXPECT_EQ(ErrorOf({"--time", "5", "x"}), "unknown flag --time; did you mean --timeout?");
}

TEST(FlagsTest, AWholeNameOfOursWinsOverAnAbbreviationOfTorchruns) {
  EXPECT_EQ(Parse({"--env", "A", "x"}).flags, Words{"--env=A"});
  EXPECT_EQ(Parse({"--events", "f", "x"}).flags, Words{"--events=f"});
  EXPECT_EQ(Parse({"--event=null", "x"}).flags, Words{"--event-log-handler=null"});
}

TEST(FlagsTest, TheHintHasTheNameOfTheCommand) {
  auto arguments =
      ParseArguments(RankrunFlags(kTorchrun), FlagsEnd::kAtProgram, Words{"--frobnicate"});
  EXPECT_EQ(arguments.error().message, "unknown flag --frobnicate; torchrun --help lists all");
}

TEST(FlagsTest, AFlagUnlikeAllOthersGetsNoHint) {
  EXPECT_EQ(ErrorOf({"--frobnicate", "x"}), "unknown flag --frobnicate; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"--=4", "x"}), "unknown flag --; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"-z", "x"}), "unknown flag -z in \"-z\"; rankrun --help lists all");
  EXPECT_EQ(ErrorOf({"-mz", "x"}), "unknown flag -z in \"-mz\"; rankrun --help lists all");
}

TEST(FlagsTest, TheSameFlagMayComeTwice) {
  EXPECT_EQ(Parse({"-n1", "-n2", "x"}).flags, (Words{"--nproc-per-node=1", "--nproc-per-node=2"}));
}

}  // namespace
}  // namespace rankrun::launcher

#include "launcher/plan/output_settings.h"

#include <gmock/gmock.h>

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

Result<OutputPlan> Plan(const Words& flags, int workers = 2, bool as_torchrun = false,
                        const Variables& variables = {}) {
  return ReadOutput(
      SettingsOf(flags, variables),
      {.workers = workers, .as_torchrun = as_torchrun, .environment = EnvironmentOf(variables)});
}

agent::OutputSpec Read(const Words& flags, int workers = 2) {
  auto plan = Plan(flags, workers);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? plan->spec : agent::OutputSpec{};
}

std::string ErrorOf(const Words& flags, int workers = 2) {
  auto plan = Plan(flags, workers);
  return plan ? "accepted" : plan.error().message;
}

// Returns one letter per stream, stdout first: c(onsole), f(ile), b(oth),
// n(owhere).
std::string Streams(const agent::OutputSpec& spec) {
  auto letter = [](agent::StreamPlan plan) {
    if (plan.to_console) return plan.to_file ? 'b' : 'c';
    return plan.to_file ? 'f' : 'n';
  };
  std::string text;
  for (const agent::WorkerOutput& worker : spec.workers) {
    text += text.empty() ? "" : " ";
    text += letter(worker.standard_output);
    text += letter(worker.standard_error);
  }
  return text;
}

std::vector<std::string> WarningsOf(const Words& flags) {
  auto plan = Plan(flags);
  EXPECT_TRUE(plan) << plan.error().message;
  return plan ? plan->warnings : std::vector<std::string>{};
}

TEST(OutputSettingsTest, AFilterThatShowsNothingIsAWarning) {
  using testing::ElementsAre;
  EXPECT_THAT(
      WarningsOf({"--local-ranks-filter", "15"}),
      ElementsAre("--local-ranks-filter \"15\" shows no output: the local ranks are 0 to 1"));
  EXPECT_THAT(WarningsOf({"--ranks-filter=2,3"}),
              ElementsAre("--ranks-filter \"2,3\" shows no output: the ranks are 0 to 1"));
  EXPECT_THAT(WarningsOf({"--local-ranks-filter=1,15", "--ranks-filter=1,8"}), testing::IsEmpty());
}

TEST(OutputSettingsTest, AHiddenPromptIsAWarning) {
  for (const Words& flags : {Words{"--stdin=1", "--local-ranks-filter=0"},
                             {"--stdin=1", "-r3"},
                             {"--stdin=1", "-r1:1"},
                             {"--stdin=1", "--ranks-filter=0"}}) {
    EXPECT_THAT(
        WarningsOf(flags),
        testing::ElementsAre("--stdin: local rank 1 reads the input, but its output is not shown"))
        << flags.at(1);
  }
  EXPECT_THAT(WarningsOf({"--local-ranks-filter=1"}), testing::IsEmpty()) << "by default";
  EXPECT_THAT(WarningsOf({"--stdin=all", "-r3"}), testing::IsEmpty());
  EXPECT_THAT(WarningsOf({"--stdin=1", "-t3"}), testing::IsEmpty());
}

TEST(OutputSettingsTest, ARanksFilterListsRanksOfTheWholeJob) {
  EXPECT_EQ(Read({"--ranks-filter", "0, 12"}).shown_ranks, (std::set<int>{0, 12}));
  EXPECT_FALSE(Read({}).shown_ranks);
  EXPECT_FALSE(Read({"--ranks-filter="}).shown_ranks);
  EXPECT_EQ(ErrorOf({"--ranks-filter=all"}),
            "--ranks-filter: want ranks with commas between, as 0,2, got \"all\"");
}

TEST(OutputSettingsTest, MasksAndMapsChooseStreams) {
  struct Row {
    Words flags;
    const char* streams;
  };
  for (const Row& row : {
           Row{{}, "cc cc cc"},
           Row{{"-r0"}, "cc cc cc"},
           Row{{"-r1"}, "fc fc fc"},
           Row{{"-r2"}, "cf cf cf"},
           Row{{"-r3"}, "ff ff ff"},
           Row{{"-t1"}, "bc bc bc"},
           Row{{"-t2"}, "cb cb cb"},
           Row{{"-t3"}, "bb bb bb"},
           Row{{"-r1", "-t2"}, "fb fb fb"},
           Row{{"-r3", "-t3"}, "bb bb bb"},
           Row{{"-r0:3,2:1"}, "ff cc fc"},
           Row{{"-t1:3"}, "cc bb cc"},
           Row{{"-r3", "-t0:3"}, "bb ff ff"},
           Row{{"-t0:1,0:2"}, "cb cc cc"},
           Row{{"--local-ranks-filter=1"}, "nn cc nn"},
           Row{{"--local-ranks-filter=0, 2"}, "cc nn cc"},
           Row{{"--local-ranks-filter="}, "cc cc cc"},
           Row{{"-t3", "--local-ranks-filter=0"}, "bb ff ff"},
           Row{{"-r1", "--local-ranks-filter=0"}, "fc fn fn"},
           Row{{"-t1", "--log-dir=/dev/null"}, ""},
       }) {
    EXPECT_EQ(Streams(Read(row.flags, 3)), row.streams) << testing::PrintToString(row.flags);
  }
}

TEST(OutputSettingsTest, MapsReachLocalRanksAboveNine) {
  agent::OutputSpec spec = Read({"-r10:3,11:1"}, 12);
  EXPECT_TRUE(spec.workers[10].standard_error.to_file);
  EXPECT_TRUE(spec.workers[11].standard_output.to_file);
  EXPECT_FALSE(spec.workers[11].standard_error.to_file);
  EXPECT_FALSE(spec.workers[1].standard_output.to_file);
}

TEST(OutputSettingsTest, OtherTextsThanMasksAreRefused) {
  for (const char* bad : {"4", "-1", "00", "x", "0:4", "0:", ":3", "0:3,", ",0:3", "0:3,3", "a:1",
                          "-1:3", "0=3", " 3"}) {
    for (std::string name : {"--tee", "--redirects"}) {
      EXPECT_EQ(
          ErrorOf({name, bad}),
          name + ": want 0, 1, 2 or 3, or such masks by local rank as 0:3,1:2, got \"" + bad + '"');
    }
  }
}

TEST(OutputSettingsTest, OtherTextsThanLocalRanksAreRefused) {
  for (const char* bad : {"a", "0,", ",", "0;1", "-1", "0-2"}) {
    EXPECT_EQ(
        ErrorOf({"--local-ranks-filter", bad}),
        std::string("--local-ranks-filter: want local ranks with commas between, as 0,2, got \"") +
            bad + '"');
  }
}

TEST(OutputSettingsTest, LocalRanksThatThereAreNotAreNoted) {
  auto plan = Plan({"-t0:3,7:3", "--local-ranks-filter=0,9"});
  ASSERT_TRUE(plan);
  EXPECT_EQ(
      plan->ignored,
      (std::vector<Note>{
          {"--tee 0:3,7:3", "in part, for local rank 7: local ranks are 0 to 1"},
          {"--local-ranks-filter 0,9", "in part, for local rank 9: local ranks are 0 to 1"}}));
}

TEST(OutputSettingsTest, WithoutALogFolderNothingIsRedirected) {
  auto plan = Plan({"--log-dir=/dev/null", "-r3", "-t1", "--local-ranks-filter=0"});
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->spec.no_files);
  std::string why = "--log-dir is /dev/null";
  EXPECT_EQ(plan->ignored,
            (std::vector<Note>{
                {"--redirects 3", why}, {"--tee 1", why}, {"--local-ranks-filter 0", why}}));
  EXPECT_EQ(ErrorOf({"--log-dir=/dev/null", "--duplicate-stderr-filters=x"}),
            "--duplicate-stderr-filters: needs a folder for its file, and --log-dir is /dev/null");
  EXPECT_EQ(ErrorOf({"--log-dir=/dev/null", "-r9"}).substr(0, 12), "--redirects:");
}

TEST(OutputSettingsTest, FoldersAndLimitsArePassedOn) {
  agent::OutputSpec spec = Read({"--log-dir=logs", "--log-limit=8M", "--pty", "--trace=t"});
  EXPECT_EQ(spec.trace_dir, "t");
  EXPECT_EQ(spec.log_dir, "logs");
  EXPECT_FALSE(spec.no_files);
  EXPECT_EQ(spec.log_limit, 8u << 20);
  EXPECT_TRUE(spec.pty);
  EXPECT_EQ(Read({}).log_dir, std::nullopt);
  EXPECT_EQ(Read({"--log-dir="}).log_dir, std::nullopt);
  EXPECT_EQ(Read({}).log_limit, 0U);
  EXPECT_EQ(Read({}).trace_dir, "");
}

TEST(OutputSettingsTest, FiltersAreTextsWithCommasBetween) {
  EXPECT_EQ(ParseFilters("apple,orange"), (Words{"apple", "orange"}));
  EXPECT_EQ(ParseFilters("a,,b,c"), (Words{"a,b", "c"}));
  EXPECT_EQ(ParseFilters(",,,"), (Words{",", ""}));
  EXPECT_EQ(ParseFilters(",,,,"), Words{",,"});
  EXPECT_EQ(ParseFilters("a,"), (Words{"a", ""}));
  agent::OutputSpec spec = Read({"--duplicate-stdout-filters=a", "--duplicate-stderr-filters=b,c"});
  EXPECT_EQ(spec.stdout_filters, Words{"a"});
  EXPECT_EQ(spec.stderr_filters, (Words{"b", "c"}));
  EXPECT_TRUE(Read({"--duplicate-stdout-filters="}).stdout_filters.empty());
}

TEST(OutputSettingsTest, OneAllOrNobodyReadsStandardInput) {
  using Target = agent::StdinPlan::Reader;
  EXPECT_EQ(Read({}).standard_input.reader, Target::kOne);
  EXPECT_EQ(Read({}).standard_input.local_rank, 0);
  EXPECT_EQ(Read({"--stdin=1"}).standard_input.local_rank, 1);
  EXPECT_EQ(Read({"--stdin=all"}).standard_input.reader, Target::kAll);
  EXPECT_EQ(Read({"--stdin=none"}).standard_input.reader, Target::kNobody);
  EXPECT_EQ(Read({"--stdin=inherit"}).standard_input.reader, Target::kInherit);
  for (const char* bad : {"2", "-1", "some", "0,1"}) {
    EXPECT_EQ(ErrorOf({"--stdin", bad}),
              std::string("--stdin: want none, all, inherit or a local rank from 0 to 1, got \"") +
                  bad + '"');
  }
}

TEST(OutputSettingsTest, ByTheNameTorchrunAllWorkersInheritTheInput) {
  using Target = agent::StdinPlan::Reader;
  const auto reader = [](const Words& flags) {
    return Plan(flags, 2, true)->spec.standard_input.reader;
  };
  EXPECT_EQ(reader({}), Target::kInherit);
  EXPECT_EQ(reader({"--stdin=0"}), Target::kOne);
}

TEST(OutputSettingsTest, ThePrefixDependsOnTheNameAndTheNumberOfWorkers) {
  constexpr const char* kVariable = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
  struct Row {
    Words flags;
    int workers;
    bool as_torchrun;
    Variables variables;
    const char* prefix;
    bool teed_only;
  };
  for (const Row& row : {
           Row{{}, 1, false, {}, "", false},
           Row{{}, 2, false, {}, "[${rank}] ", false},
           Row{{"--prefix=auto"}, 2, false, {}, "[${rank}] ", false},
           Row{{"--prefix=none"}, 2, false, {}, "", false},
           Row{{"--prefix=none"}, 2, false, {{kVariable, "t"}}, "", false},
           Row{{"--prefix=${rank}> "}, 1, false, {}, "${rank}> ", false},
           Row{{"--prefix=a"}, 2, false, {{kVariable, "t"}}, "a", false},
           Row{{}, 1, false, {{kVariable, "t"}}, "t", false},
           Row{{}, 1, true, {}, "[${role_name}${local_rank}]:", true},
           Row{{}, 2, true, {{kVariable, "t"}}, "t", true},
           Row{{"--prefix=a"}, 2, true, {{kVariable, "t"}}, "a", false},
           Row{{"--prefix=none"}, 2, true, {}, "", false},
           Row{{"--log-line-prefix-template=f"}, 1, true, {{kVariable, "t"}}, "f", true},
           Row{{}, 1, true, {{"PET_LOG_LINE_PREFIX_TEMPLATE", "p"}, {kVariable, "t"}}, "p", true},
           Row{{"--log_line_prefix_template="}, 1, true, {{kVariable, "t"}}, "t", true},
           Row{{"--log-line-prefix-template=f"}, 1, false, {}, "f", false},
           Row{{"--log-line-prefix-template=f", "--prefix=a"}, 2, true, {}, "a", false},
       }) {
    auto plan = Plan(row.flags, row.workers, row.as_torchrun, row.variables);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->spec.prefix, row.prefix);
    EXPECT_EQ(plan->spec.prefix_teed_only, row.teed_only);
  }
}

}  // namespace
}  // namespace rankrun::launcher

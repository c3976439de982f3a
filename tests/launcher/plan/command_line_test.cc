#include "launcher/plan/command_line.h"

#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

Arguments Read(const Words& words) {
  auto arguments = ReadArguments(kRankrun, words);
  EXPECT_TRUE(arguments) << arguments.error().message;
  return arguments ? *arguments : Arguments{};
}

std::string ErrorOf(const Words& words) {
  auto arguments = ReadArguments(kRankrun, words);
  EXPECT_FALSE(arguments);
  if (arguments) return "accepted";
  EXPECT_EQ(arguments.error().code, ErrorCode::kInvalid);
  return arguments.error().message;
}

TEST(CommandLineTest, TheLastOfSeveralValuesCounts) {
  EXPECT_EQ(Read({"-n2", "--nproc_per_node=4", "--standalone", "--standalone", "x"})
                .flags.Text("nproc-per-node"),
            "4");
}

TEST(CommandLineTest, TextComesThroughUntouched) {
  for (const char* address : {"::1", "[::1]", "[a,b]", "a,b", "\"x\"", "'x'", "my host", "$HOME",
                              "%h", "a=b", "{}", "-x"}) {
    EXPECT_EQ(Read({"--master-addr=" + std::string(address), "x"}).flags.Text("master-addr"),
              address);
  }
}

TEST(CommandLineTest, TheProgramsArgumentsAreItsOwn) {
  Arguments arguments = Read({"-n2", "train.py", "--help", "-n", "x", "--nnodes=2"});
  EXPECT_EQ(arguments.positionals, (Words{"train.py", "--help", "-n", "x", "--nnodes=2"}));
  EXPECT_FALSE(arguments.flags.Has("help"));
}

TEST(CommandLineTest, ACountIsAWholeNumber) {
  for (const char* bad : {"-1", "1.5", "two", "4x", "99999999999", "1e3", "+2"}) {
    EXPECT_EQ(
        ErrorOf({"--max-restarts", bad, "x"}),
        std::string("--max-restarts: want a whole number from 0 to 1000000, got \"") + bad + '"');
  }
}

TEST(CommandLineTest, APortIsAPort) {
  EXPECT_EQ(Read({"--master-port=65535", "x"}).flags.Port("master-port"), 65535);
  for (const char* bad : {"65536", "-1", "http", "1.0", "0x50"}) {
    EXPECT_EQ(ErrorOf({"--master-port", bad, "x"}),
              std::string("--master-port: want a port number from 0 to 65535, got \"") + bad + '"');
  }
}

TEST(CommandLineTest, SecondsMayHaveFractionsButAreNeverNegative) {
  using std::chrono::milliseconds;
  for (auto [text, wanted] : {std::pair{"0", 0}, {"0.25", 250}, {"1e1", 10'000}}) {
    EXPECT_EQ(Read({"--timeout", text, "x"}).flags.Seconds("timeout"), milliseconds(wanted));
  }
  for (const char* bad : {"-1", "nan", "inf", "soon", "1s", "1e300", "40000000"}) {
    EXPECT_EQ(ErrorOf({"--timeout", bad, "x"}),
              std::string("--timeout: want seconds, from 0 to a year, got \"") + bad + '"');
  }
}

TEST(CommandLineTest, AStoreValueHasAtMostAGibibyte) {
  EXPECT_EQ(Read({"--store-max-value=1G", "x"}).flags.Size("store-max-value"), 1u << 30);
  EXPECT_EQ(ErrorOf({"--store-max-value=1025M", "x"}),
            "--store-max-value: want at most 1G, got \"1025M\"");
}

TEST(CommandLineTest, AWrongValueIsAnErrorThoughALaterOneIsRight) {
  EXPECT_EQ(ErrorOf({"--max-restarts", "two", "--max-restarts", "2", "x"}),
            "--max-restarts: want a whole number from 0 to 1000000, got \"two\"");
}

TEST(CommandLineTest, ErrorsOfTheFlagsComeThrough) {
  EXPECT_EQ(ErrorOf({"--max-restars=1", "x"}),
            "unknown flag --max-restars; did you mean --max-restarts?");
}

// Records the files that CollectSettings reads and the folders it changes to.
struct CollectTest : testing::Test {
  Result<CommandLine> Collect(const Words& words, std::string_view command = kRankrun) {
    auto arguments = ReadArguments(command, words);
    EXPECT_TRUE(arguments) << arguments.error().message;
    return CollectSettings(command, *arguments,
                           {.environment = EnvironmentOf(variables),
                            .read_file = [this](const std::string& path) -> Result<std::string> {
                              steps.push_back("read " + path);
                              if (file.empty()) return Error{ErrorCode::kNotFound, path + ": gone"};
                              return file;
                            },
                            .change_folder = [this](const std::string& path) -> Result<void> {
                              steps.push_back("cd " + path);
                              if (path == "gone") return Error{ErrorCode::kNotFound, "gone: gone"};
                              return {};
                            },
                            .scheduler = scheduler});
  }

  Scheduler scheduler;
  Variables variables;
  std::string file;
  Words steps;
};

TEST_F(CollectTest, TorchrunAsksNoSchedulerForTheNumberOfNodes) {
  scheduler.nodes = SourcedValue<int>{2, "SLURM_STEP_NUM_NODES"};
  scheduler.node_index = SourcedValue<int>{1, "SLURM_NODEID"};
  scheduler.endpoint = SourcedValue<agent::Endpoint>{{"n01", 29400}, "SLURM_STEP_NODELIST"};
  EXPECT_EQ(Collect({"train.py"})->settings.Text("nnodes"), "2");
  EXPECT_EQ(Collect({"train.py"}, kTorchrun)->settings.Text("nnodes"), std::nullopt);
  auto typed = Collect({"--nnodes=2", "train.py"}, kTorchrun);
  EXPECT_EQ(typed->settings.Text("rdzv-endpoint"), "n01:29400");
  scheduler = {};
  scheduler.no_nodes = "two tasks on one node";
  EXPECT_EQ(Collect({"train.py"}).error().message, "two tasks on one node");
  EXPECT_TRUE(Collect({"train.py"}, kTorchrun));
}

TEST_F(CollectTest, TheFileIsTheWeakestSource) {
  file = R"({"tee": "1", "redirects": "1", "max-restarts": 1, "role": "file"})";
  variables = {{"PET_TEE", "2"}, {"PET_REDIRECTS", "2"}, {"RANKRUN_MAX_RESTARTS", "2"}};
  auto line = Collect({"--config=job.json", "--tee=3", "train.py"});
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_EQ(line->settings.Text("tee"), "3");
  EXPECT_EQ(line->settings.Text("redirects"), "2");
  EXPECT_EQ(line->settings.Text("max-restarts"), "2");
  EXPECT_EQ(line->settings.Text("role"), "file");
  EXPECT_EQ(line->settings.OriginOf("role"), "\"role\" in job.json");
  EXPECT_EQ(line->settings.overridden().size(), 4U);
}

TEST_F(CollectTest, TheFilesProgramCountsIfNoneIsTyped) {
  file = R"({"program": ["train.py", "--x"]})";
  auto line = Collect({"--config=job.json"});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->program, (Words{"train.py", "--x"}));
  EXPECT_EQ(line->program_origin, "\"program\" in job.json");
  line = Collect({"--config=job.json", "other.py"});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->program, Words{"other.py"});
  EXPECT_EQ(line->program_origin, "");
}

TEST_F(CollectTest, AVariableMayNameTheFile) {
  file = R"({"tee": 3})";
  variables = {{"RANKRUN_CONFIG", "job.json"}};
  auto line = Collect({"train.py"});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->settings.Text("tee"), "3");
}

TEST_F(CollectTest, TheFolderIsChangedBeforeTheFileIsRead) {
  file = R"({"chdir": "elsewhere"})";
  ASSERT_TRUE(Collect({"--config=job.json", "--chdir=there", "train.py"}));
  EXPECT_EQ(steps, (Words{"cd there", "read job.json"}));
}

TEST_F(CollectTest, AFolderOfTheFileIsChangedToAfterIt) {
  file = R"({"chdir": "there"})";
  ASSERT_TRUE(Collect({"--config=job.json", "train.py"}));
  EXPECT_EQ(steps, (Words{"read job.json", "cd there"}));
}

TEST_F(CollectTest, ErrorsNameWhereTheValueCameFrom) {
  EXPECT_EQ(Collect({"--config=job.json", "x"}).error().message, "--config: job.json: gone");
  variables = {{"RANKRUN_CHDIR", "gone"}};
  EXPECT_EQ(Collect({"x"}).error().message, "RANKRUN_CHDIR: gone: gone");
  variables = {{"PET_MAX_RESTARTS", "x"}};
  EXPECT_EQ(Collect({"x"}).error().message,
            "PET_MAX_RESTARTS: want a whole number from 0 to 1000000, got \"x\"");
}

}  // namespace
}  // namespace rankrun::launcher

#include "launcher/show/explain.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <string>

#include "launcher/show/shell_line.h"
#include "tests/launcher/settings/settings_of.h"

namespace rankrun::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Machine TestMachine() {
  return {.environment = EnvironmentOf({}),
          .variables = {"HOME=/root", "OMP_NUM_THREADS=3"},
          .accelerators = [](const Words&) { return agent::Accelerators(); },
          .visible_gpus = [](const auto&) { return Result<Words>(Words{}); },
          .cpus = 8,
          .open_files = {},
          .random_id = "random",
          .host_name = "host",
          .read_own_secret = [](const std::string&) -> Result<std::string> {
            return std::string("the user's own secret");
          }};
}

JobPlan PlanOf(const Settings& settings, const Words& program, const Variables& variables = {}) {
  Machine machine = TestMachine();
  machine.environment = EnvironmentOf(variables);
  auto plan = MakeJobPlan(settings, kRankrun, machine);
  EXPECT_TRUE(plan) << plan.error().message;
  if (!plan) return {};
  auto workers = static_cast<size_t>(plan->spec.workers);
  plan->share = {.cores = 8,
                 .threads = std::vector<int>(workers, 8 / plan->spec.workers),
                 .cpus = {},
                 .topology = {},
                 .gpus = {}};
  plan->spec.program = {.file = program[0], .arguments = program};
  return *plan;
}

std::string Explain(const Words& flags, const Variables& variables = {},
                    const Words& program = {"/bin/prog", "--out=$local_rank", "a b"}) {
  CommandLine line{
      .settings = SettingsOf(flags, variables), .program = program, .program_origin = ""};
  return ExplainText(RankrunFlags(), line, PlanOf(line.settings, program, variables),
                     TestMachine());
}

TEST(ExplainTest, EachSettingIsShownWithItsOrigin) {
  std::string text = Explain({"-n2", "--max-restarts=1"}, {{"PET_TEE", "3"}});
  EXPECT_THAT(text, HasSubstr("Settings that differ from their defaults\n"
                              "  nproc-per-node  2  --nproc-per-node\n"
                              "  tee             3  PET_TEE\n"
                              "  max-restarts    1  --max-restarts\n"));
  EXPECT_THAT(Explain({}), HasSubstr("Settings: all have their defaults\n"));
}

TEST(ExplainTest, SettingsWithoutEffectAreShownWithTheReason) {
  std::string text =
      Explain({"--tee=3", "--monitor-interval=1"}, {{"PET_TEE", "1"}, {"PET_RDZV_CONF", "a=b"}});
  EXPECT_THAT(text, HasSubstr("\nWithout effect\n"
                              "  PET_TEE 1             overridden by --tee\n"
                              "  PET_RDZV_CONF a=b     a job of one node waits for no other node\n"
                              "  --monitor-interval 1  rankrun sees each exit at once\n"));
  EXPECT_THAT(Explain({}), Not(HasSubstr("Without effect")));
}

TEST(ExplainTest, ThePlanHasProgramWorkersAndPort) {
  EXPECT_THAT(Explain({"-n2"}),
              AllOf(HasSubstr("  workers      2\n"),
                    HasSubstr("  program      /bin/prog --out=0 'a b' (of local rank 0)\n"),
                    HasSubstr("  MASTER_PORT  a free one for each attempt\n"),
                    HasSubstr("  prefix       \"[${rank}] \"\n")));
  EXPECT_THAT(Explain({"--master-port=29500"}),
              AllOf(HasSubstr("  workers      1: there is no GPU that we may use\n"),
                    HasSubstr("  MASTER_PORT  29500\n"), HasSubstr("  MASTER_PORT=29500\n")));
}

TEST(ExplainTest, PlaceholdersAreReplacedAsFarAsTheyAreKnown) {
  Words program = {"/bin/prog", "${rank}/${world_size}", "${hostname}${node_rank}"};
  EXPECT_THAT(Explain({"-n2"}, {}, program),
              HasSubstr("  program      /bin/prog 0/2 host0 (of local rank 0)\n"));
  EXPECT_THAT(Explain({"-n1", "--nnodes=2", "--rdzv-endpoint=h:1", "--insecure"}, {}, program),
              HasSubstr("  program      /bin/prog '${rank}/${world_size}' 'host${node_rank}'\n"));
}

TEST(ExplainTest, ThePlanHasTheDestinationsOfOutput) {
  EXPECT_THAT(
      Explain({"-n4", "--redirects=0:1,2:1,3:1", "--log-dir=logs", "--rdzv-id=job"}),
      AllOf(HasSubstr("  stdout       console for local ranks 1; stdout.log for local ranks "
                      "0,2-3\n"),
            HasSubstr("  stderr       console for local ranks 0-3\n"),
            HasSubstr("  files        logs/job_XXXXXXXX/attempt_0/<local rank>/*\n")));
  EXPECT_THAT(Explain({"-n4"}), HasSubstr("/attempt_0/<local rank>.*\n"));
  EXPECT_THAT(Explain({"--log-dir=/dev/null"}), HasSubstr("  files        none\n"));
}

TEST(ExplainTest, ThePlanHasTheFilesOfTraces) {
  const std::string folder = std::filesystem::current_path().string() + "/t";
  EXPECT_THAT(Explain({"--trace=t", "--rdzv-id=job"}),
              AllOf(HasSubstr("  traces       " + folder + "/job/attempt_0/rank_<rank>.trace\n"),
                    HasSubstr("  RANKRUN_TRACE=" + folder + "\n")));
  EXPECT_THAT(Explain({}), Not(HasSubstr("trace")));
}

TEST(ExplainTest, TheEnvironmentIsOnlyWhatRankrunSets) {
  EXPECT_THAT(Explain({"-n2", "-xA=b"}),
              AllOf(HasSubstr("  RANK=0\n"), HasSubstr("  WORLD_SIZE=2\n"), HasSubstr("  A=b\n"),
                    HasSubstr("  MASTER_PORT=<a free one for each attempt>\n"),
                    Not(HasSubstr("HOME=")), Not(HasSubstr("OMP_NUM_THREADS="))));
}

TEST(ExplainTest, ControlCharactersOfSettingsAreEscaped) {
  EXPECT_THAT(Explain({"--role=\x1b[31m"}), Not(HasSubstr("\x1b")));
}

TEST(ExplainTest, SeveralNodesAreExplained) {
  std::string text =
      Explain({"-n2", "--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=h,[::1]:1",
               "--rdzv-conf=is_host=1", "--node-rank=1", "--local-addr=a", "--insecure"},
              {});
  EXPECT_THAT(
      text,
      AllOf(HasSubstr("\nWarnings\n  without a job secret anybody"),
            HasSubstr("  nodes        1 to 2; further nodes are spares\n"
                      "  this node    host, claims node rank 1, reached at a\n"
                      "  rendezvous   h:29400, [::1]:1 (--rdzv-endpoint), on this node\n"
                      "  times        600.0 s to meet, 30.0 s more for nodes above the minimum, "
                      "3600.0 s from the first exit to the last\n"
                      "  lost nodes   after 10.0 s of silence; then the others restart if they "
                      "are enough\n"
                      "  bad nodes    change places with an idle spare after 2 failures in a row\n"
                      "  secret       none\n"
                      "  local ranks  0 to 1; ranks are known after the rendezvous\n"),
            HasSubstr("  MASTER_ADDR  the address of the node with rank 0\n"),
            HasSubstr("\nEnvironment of local rank 0, as far as it differs from ours\n"),
            HasSubstr("  RANK=<known after the rendezvous>\n"),
            HasSubstr("  MASTER_ADDR=<known after the rendezvous>\n"),
            HasSubstr("  LOCAL_WORLD_SIZE=2\n")));
}

TEST(ExplainTest, AStaticMasterIsKnownBeforeNodesMeet) {
  EXPECT_THAT(Explain({"--nnodes=2", "--master-addr=h", "--node-rank=1", "--on-lost-node=stop",
                       "--replace-after=0", "--insecure"}),
              AllOf(HasSubstr("  rendezvous   h:29500 (--master-addr), on another node\n"),
                    HasSubstr("of silence; then the job ends\n"),
                    HasSubstr("  bad nodes    keep their places\n"),
                    HasSubstr("  MASTER_ADDR  h\n"), HasSubstr("  MASTER_ADDR=h\n"),
                    HasSubstr("  MASTER_PORT=29500\n"), Not(HasSubstr("Warnings"))));
}

TEST(ExplainTest, TheSecretIsNotShown) {
  Variables variables = {{"RANKRUN_SECRET", "hush-hush-hush-hush"}};
  std::string text = Explain({"--nnodes=2", "--rdzv-endpoint=h:1"}, variables);
  EXPECT_THAT(
      text, AllOf(HasSubstr("  secret       from RANKRUN_SECRET\n"), Not(HasSubstr("hush-hush"))));
}

TEST(ShellLineTest, WordsAreQuotedIfTheyMustBe) {
  struct Row {
    const char* word;
    const char* quoted;
  };
  for (const Row& row :
       {Row{"", "''"}, Row{"a", "a"}, Row{"a b", "'a b'"}, Row{"$x", "'$x'"},
        Row{"it's", "'it'\\''s'"}, Row{"a=b:c,d/e-f_g.h@i%j+k", "a=b:c,d/e-f_g.h@i%j+k"},
        Row{"*", "'*'"}, Row{"a\nb", "'a\nb'"}, Row{"~", "'~'"}}) {
    EXPECT_EQ(ShellQuoted(row.word), row.quoted);
  }
}

TEST(DryRunTest, ThereIsOneLineForEachWorkerThatAShellRuns) {
  Settings settings = SettingsOf({"-n2", "-xA=it's"});
  JobPlan plan = PlanOf(settings, {"/bin/sh", "-c", "echo \"$RANK $A\" $local_rank $MASTER_PORT"});
  std::string text = DryRunText(plan, TestMachine(), "/");
  EXPECT_THAT(text, HasSubstr("env -C / A='it'\\''s' "));
  EXPECT_THAT(text, HasSubstr(" TORCHELASTIC_USE_AGENT_STORE=False "));
  FILE* pipe = popen(text.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  char output[200] = {};
  size_t got = fread(output, 1, sizeof output - 1, pipe);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_EQ(std::string(output, got), "0 it's 0 29500\n1 it's 1 29500\n");
}

TEST(DryRunTest, RanksOfSeveralNodesAreThoseOfEqualOnes) {
  Settings settings = SettingsOf(
      {"-n2", "--nnodes=3", "--rdzv-backend=c10d", "--rdzv-endpoint=h", "--node-rank=1"});
  std::string text =
      DryRunText(PlanOf(settings, {"/bin/true", "${rank}of${world_size}"}), TestMachine(), "");
  EXPECT_THAT(text, AllOf(HasSubstr(" 2of6\n"), HasSubstr(" 3of6\n")));
  EXPECT_THAT(text, HasSubstr("# assumes that all 3 nodes join, with 2 workers each\nenv "));
  for (const char* entry : {" RANK=2 ", " RANK=3 ", " WORLD_SIZE=6 ", " GROUP_RANK=1 ",
                            " GROUP_WORLD_SIZE=3 ", " MASTER_ADDR=h ", " MASTER_PORT=29500 "}) {
    EXPECT_THAT(text, HasSubstr(entry));
  }
}

}  // namespace
}  // namespace rankrun::launcher

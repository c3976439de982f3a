// The command line: program names, sources of flags, options that start no job.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr ProcessExit kSuccess{.signaled = false, .value = 0};

struct CommandLineTest : ::testing::Test {
  CommandLineTest() { EXPECT_EQ(symlink(test::Program("rankrun").c_str(), torchrun.c_str()), 0); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder.Path(name)) << text;
    return folder.Path(name);
  }

  ScratchFolder folder;
  std::string torchrun = folder.Path("torchrun");
};

// sh replaces Python here; it is called as `sh -u FILE ARGUMENTS`.
TEST_F(CommandLineTest, UnderTheNameOfTorchrunEveryProgramRunsUnderPython) {
  std::string program = folder.Script("train", "echo $0 $1 $2");
  Job run({.arguments = {program, "$local_rank", "a$$b"},
           .variables = {{"PYTHON_EXEC", "/bin/sh"}},
           .program = torchrun});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  EXPECT_EQ(run.Out(), program + " 0 a$b\n");
}

TEST_F(CommandLineTest, UnderTheNamesOfTheOldLauncherTheProgramGetsItsLocalRank) {
  std::string program = folder.Script("train", "echo $* $LOCAL_RANK");
  for (const char* name : {"rankrun-launch", "torch.distributed.launch"}) {
    std::string launch = folder.Path(name);
    ASSERT_EQ(symlink(test::Program("rankrun").c_str(), launch.c_str()), 0);
    Job run({.arguments = {"--nproc_per_node=1", program, "more"},
             .variables = {{"PYTHON_EXEC", "/bin/sh"}},
             .program = launch});
    EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
    EXPECT_EQ(run.Out(), "--local-rank=0 more 0\n");
    EXPECT_THAT(run.Err(), ::testing::HasSubstr(
                               "rankrun: the name rankrun-launch is deprecated: want rankrun"));
    Job plain({.arguments = {"--use-env", program, "more"},
               .variables = {{"PYTHON_EXEC", "/bin/sh"}},
               .program = launch});
    EXPECT_EQ(plain.Wait(), kSuccess) << plain.Err();
    EXPECT_EQ(plain.Out(), "more 0\n");
  }
}

TEST_F(CommandLineTest, UnderTheNameOfTorchrunOnlyTeedLinesCarryAPrefix) {
  Job run({.arguments = {"--no-python", "--tee=1", "/bin/sh", "-c", "echo out; echo err >&2"},
           .variables = {{"RANKRUN_PREFIX", ""}},
           .program = torchrun});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  EXPECT_EQ(run.Out(), "[default0]:out\n");
  EXPECT_THAT(run.Err(), ::testing::EndsWith("\nerr\n"));
}

TEST_F(CommandLineTest, AsRankrunTwoDollarsStay) {
  Job run({.arguments = {"-n1", "/bin/echo", "${local_rank}", "a$$b"}});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  EXPECT_EQ(run.Out(), "0 a$$b\n");
}

TEST_F(CommandLineTest, AllMessagesBeginAlikeUnderEachName) {
  Job unknown({.arguments = {"--nonsense"}, .program = torchrun});
  EXPECT_EQ(unknown.Wait(), Code(2));
  EXPECT_EQ(unknown.Err(), "rankrun: unknown flag --nonsense; torchrun --help lists all\n");
  // A warning of the launcher, and the report of the agent.
  Job failing({.arguments = {"--no-python", "/bin/sh", "-c", "exit 3"},
               .variables = {{"RANKRUN_MAX_RESTART", "1"}},
               .program = torchrun});
  EXPECT_EQ(failing.Wait(), Code(3));
  EXPECT_THAT(failing.Err(), HasSubstr("rankrun: RANKRUN_MAX_RESTART is not read: "));
  EXPECT_THAT(failing.Err(), HasSubstr("\nrankrun: attempt 0 failed"));
  EXPECT_THAT(failing.Err(), ::testing::Not(HasSubstr("torchrun: ")));
}

TEST_F(CommandLineTest, APortInUseIsNamedAsItWasTyped) {
  Fd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* raw = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(bind(taken.get(), raw, size), 0);
  ASSERT_EQ(listen(taken.get(), 1), 0);
  ASSERT_EQ(getsockname(taken.get(), raw, &size), 0);
  const std::string typed = "localhost:" + std::to_string(ntohs(address.sin_port));
  Job run({.arguments = {"--rdzv-endpoint", typed, "/bin/true"}});
  EXPECT_EQ(run.Wait(), Code(2));
  EXPECT_THAT(run.Err(), ::testing::StartsWith("rankrun: --rdzv-endpoint " + typed + ": "));
}

TEST_F(CommandLineTest, AWrongVariableIsNamedWithExitCodeTwo) {
  Job run({.arguments = {"/bin/true"}, .variables = {{"PET_MAX_RESTARTS", "x"}}});
  EXPECT_EQ(run.Wait(), Code(2));
  EXPECT_EQ(run.Err(),
            "rankrun: PET_MAX_RESTARTS: want a whole number from 0 to 1000000, got \"x\"\n");
}

TEST_F(CommandLineTest, AnAddressThatCannotBeBoundNamesWhereItCameFrom) {
  Job run({.arguments = {"/bin/true"}, .variables = {{"PET_RDZV_ENDPOINT", "192.0.2.1:0"}}});
  EXPECT_EQ(run.Wait(), Code(2));
  EXPECT_THAT(run.Err(), ::testing::StartsWith("rankrun: PET_RDZV_ENDPOINT 192.0.2.1: "));
}

TEST_F(CommandLineTest, AFileMayHoldTheWholeJob) {
  std::string config = Write("job.json", R"({"nproc-per-node": 2, "env": {"A": "b"},
      "chdir": ")" + folder.path() + R"(", "stdin": "none",
      "program": ["/bin/sh", "-c", "echo $A $PWD >out.$RANK"]})");
  Job run({.arguments = {"--config", config}});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  for (const char* name : {"out.0", "out.1"}) {
    EXPECT_EQ(ReadText(folder.Path(name)), "b " + folder.path() + "\n");
  }
}

TEST_F(CommandLineTest, AMissingFileOrFolderIsReportedWithItsFlag) {
  Job config({.arguments = {"--config", "/nowhere/job.json", "true"}});
  EXPECT_EQ(config.Wait(), Code(2));
  EXPECT_EQ(config.Err(), "rankrun: --config: /nowhere/job.json: No such file or directory\n");
  Job chdir({.arguments = {"--chdir=/nowhere", "true"}});
  EXPECT_EQ(chdir.Wait(), Code(2));
  EXPECT_EQ(chdir.Err(), "rankrun: --chdir: /nowhere: No such file or directory\n");
}

TEST_F(CommandLineTest, ProgramsAreLookedForInTheFolderThatWasChangedTo) {
  folder.Script("here", "echo here");
  Job run({.arguments = {"--chdir", folder.path(), "here"}});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  EXPECT_EQ(run.Out(), "here\n");
}

TEST_F(CommandLineTest, ExplainAndDryRunStartNothing) {
  std::string program = folder.Script("touch", "touch " + folder.Path("started"));
  Job explain({.arguments = {"-n2", "--explain", program}});
  EXPECT_EQ(explain.Wait(), kSuccess) << explain.Err();
  EXPECT_THAT(explain.Out(), AllOf(HasSubstr("\nPlan\n"), HasSubstr("WORLD_SIZE=2\n")));
  Job dry({.arguments = {"-n2", "--dry-run", program}});
  EXPECT_EQ(dry.Wait(), kSuccess) << dry.Err();
  EXPECT_THAT(dry.Out(), AllOf(HasSubstr(" RANK=0 "), HasSubstr(" RANK=1 ")));
  EXPECT_NE(access(folder.Path("started").c_str(), F_OK), 0);
}

TEST_F(CommandLineTest, AStepOfSlurmIsExplainedWithoutAnyFlag) {
  Job run({.arguments = {"--explain", "/bin/true"},
           .variables = {{"SLURM_JOB_ID", "17"},
                         {"SLURM_STEP_ID", "3"},
                         {"SLURM_PROCID", "0"},
                         {"SLURM_NODEID", "0"},
                         {"SLURM_STEP_NUM_NODES", "2"},
                         {"SLURM_STEP_NODELIST", "n[1-2]"}}});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  EXPECT_THAT(run.Out(), HasSubstr("n1:21720 (SLURM_STEP_NODELIST), on this node\n"));
}

TEST_F(CommandLineTest, AServiceOfKubernetesIsNoSetting) {
  std::map<std::string, std::string> pod = {{"RANKRUN_MASTER_PORT", "tcp://10.96.1.5:29400"},
                                            {"RANKRUN_MASTER_SERVICE_HOST", "10.96.1.5"}};
  Job run({.arguments = {"-n1", "/bin/echo", "ran"}, .variables = pod});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  EXPECT_EQ(run.Out() + run.Err(), "ran\n");
  Job explain({.arguments = {"-n1", "--explain", "/bin/true"}, .variables = pod});
  EXPECT_EQ(explain.Wait(), kSuccess) << explain.Err();
  EXPECT_THAT(explain.Out(), HasSubstr("  RANKRUN_MASTER_PORT tcp://10.96.1.5:29400  "
                                       "Kubernetes set it for a Service\n"));
}

TEST_F(CommandLineTest, ABatchScriptOfSeveralNodesGetsAdvice) {
  Job run({.arguments = {"-n1", "/bin/echo", "ran"},
           .variables = {
               {"SLURM_JOB_ID", "17"}, {"SLURM_JOB_NUM_NODES", "2"}, {"SLURMD_NODENAME", "n1"}}});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  EXPECT_EQ(run.Out(), "ran\n");
  EXPECT_EQ(run.Err(),
            "rankrun: SLURM job 17 has 2 nodes, but rankrun runs on this one only; to use "
            "its nodes: srun --ntasks-per-node=1 rankrun ...\n");
}

TEST_F(CommandLineTest, WorkersDoNotGetTheSecret) {
  Job run({.arguments = {"-n1", "/usr/bin/env"}, .variables = {{"RANKRUN_SECRET", "hush-hush"}}});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  EXPECT_THAT(run.Out() + run.Err(), ::testing::Not(HasSubstr("hush-hush")));
}

TEST_F(CommandLineTest, CompletionGoesToStandardOutput) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    Job run({.arguments = {"--completion", shell}});
    EXPECT_EQ(run.Wait(), kSuccess);
    EXPECT_THAT(run.Out(), HasSubstr("nproc-per-node"));
  }
  Job bad({.arguments = {"--completion", "bahs"}});
  EXPECT_EQ(bad.Wait(), Code(2));
  EXPECT_EQ(
      bad.Err(),
      "rankrun: --completion: want bash, zsh, fish or tcsh, got \"bahs\"; did you mean bash?\n");
}

}  // namespace
}  // namespace rankrun::testing

// Files that jobs leave in TMPDIR: a message names them, or they are removed.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>

#include "agent/output/folder_mark.h"
#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// Writes an error file, as a worker in Python does.
const std::string kFail = "echo '{\"message\": \"no luck\"}' >$TORCHELASTIC_ERROR_FILE; exit 3";

struct LeftFilesTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  Job::Options In(const std::vector<std::string>& flags, const std::string& script) const {
    return {.arguments = Shell(flags, script),
            .variables = {{"TMPDIR", folder.path()}, {"OMP_NUM_THREADS", "1"}}};
  }
  std::vector<std::string> Folders() const {
    std::vector<std::string> folders;
    for (const auto& entry : fs::directory_iterator(folder.path())) folders.push_back(entry.path());
    return folders;
  }
  // Kills the guardian, the agent and the workers of a job; neither notices the other's death.
  static void KillAll(Job& job) {
    const pid_t agent = RunningAgentOf(job);
    job.Signal(SIGSTOP);
    kill(agent, SIGKILL);
    job.Signal(SIGKILL);
    EXPECT_EQ(job.Wait(), KilledBy(SIGKILL));
  }
  static pid_t RunningAgentOf(const Job& job) {
    pid_t agent = 0;
    EXPECT_TRUE(WaitFor([&] { return (agent = AgentOf(job)) != 0; }));
    return agent;
  }
  // As if the job of a folder had ended, if it has, more than a week ago.
  static void Age(const std::string& path) {
    auto mark = agent::DecodeMark(fs::read_symlink(path + "/" + agent::kFolderMark));
    ASSERT_TRUE(mark);
    if (!mark->ended) return;
    *mark->ended -= std::chrono::hours(169);
    EXPECT_TRUE(agent::WriteMark(AT_FDCWD, path, *mark));
  }

  ScratchFolder folder;  // TMPDIR of the jobs
};

TEST_F(LeftFilesTest, OfAnAttemptBeforeASuccessTheyAreNamed) {
  Job job(
      In({"-n1", "--max-restarts=1"}, "test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0; " + kFail));
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  ASSERT_EQ(Folders().size(), 1u);
  EXPECT_THAT(job.Err(), HasSubstr(Folders()[0]));
}

TEST_F(LeftFilesTest, TheGuardianNamesThoseOfItsDeadAgent) {
  Job job(In({"-n1", "--max-restarts=1"},
             "echo up $TORCHELASTIC_RESTART_COUNT; "
             "test $TORCHELASTIC_RESTART_COUNT = 1 && exec sleep 1000; " +
                 kFail));
  ASSERT_TRUE(job.WaitForOut("up 1\n")) << job.Err();
  kill(RunningAgentOf(job), SIGKILL);
  EXPECT_EQ(job.Wait(), Code(205)) << job.Err();
  ASSERT_EQ(Folders().size(), 1u);
  EXPECT_THAT(job.Err(), HasSubstr("rankrun: files of the workers are in " + Folders()[0]));
}

TEST_F(LeftFilesTest, TheNextJobNamesOrRemovesThoseOfAKilledOne) {
  Job empty(In({"-n1"}, "echo up; exec sleep 1000"));
  Job full(In({"-n1"}, "echo '{}' >$TORCHELASTIC_ERROR_FILE; echo up; exec sleep 1000"));
  ASSERT_TRUE(empty.WaitForOut("up\n") && full.WaitForOut("up\n"));
  KillAll(empty);
  KillAll(full);
  ASSERT_TRUE(NothingIsLeft(milliseconds(20'000)));
  EXPECT_EQ(Folders().size(), 2u);
  std::string shown;
  EXPECT_TRUE(WaitFor([&] {  // each of them takes half a second at most for that
    Job next(In({"-n1"}, "true"));
    EXPECT_EQ(next.Wait(), Code(0));
    shown += next.Err();
    return Folders().size() == 1;
  }));
  EXPECT_EQ(shown, "rankrun: files of an earlier job, of which all processes were killed, are in " +
                       Folders()[0] + "\n");
  Job later(In({"-n1"}, "true"));
  EXPECT_EQ(later.Wait(), Code(0));
  EXPECT_EQ(later.Err(), "");
  EXPECT_EQ(Folders().size(), 1u);
}

TEST_F(LeftFilesTest, AWeekAfterTheEndTheyGo) {
  Job failed(In({"-n1"}, kFail));
  EXPECT_TRUE(failed.Wait());
  ASSERT_EQ(Folders().size(), 1u);
  const std::string left = Folders()[0];
  Job running(In({"-n1"}, "echo up; sleep 1000"));
  ASSERT_TRUE(running.WaitForOut("up\n"));
  for (const std::string& path : Folders()) Age(path);
  EXPECT_TRUE(WaitFor([&] {  // each of them removes what it can in half a second
    Job next(In({"-n1"}, "true"));
    EXPECT_EQ(next.Wait(), Code(0));
    EXPECT_EQ(next.Err(), "");
    return !fs::exists(left);
  }));
  EXPECT_EQ(Folders().size(), 1u) << "the folder of the job that runs is gone";
}

TEST_F(LeftFilesTest, ANamedFolderStays) {
  Job failed(In({"-n1"}, kFail));
  EXPECT_TRUE(failed.Wait());
  ASSERT_EQ(Folders().size(), 1u);
  const std::string named = Folders()[0];
  Age(named);
  Job naming(In({"-n1", "--log-dir", named}, kFail));
  EXPECT_TRUE(naming.Wait());
  Job next(In({"-n1"}, "true"));
  EXPECT_EQ(next.Wait(), Code(0));
  EXPECT_TRUE(fs::exists(named));
}

struct LeftFilesNodesTest : NodesTest {};

TEST_F(LeftFilesNodesTest, EachNodeNamesItsOwn) {
  ScratchFolder of_host, of_guest, shared;
  const std::string fifo = shared.path() + "/written";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const std::string rank_0 =
      "echo '{}' >$TORCHELASTIC_ERROR_FILE; echo >" + fifo + "; exec sleep 1000";
  const std::string script =
      "if test $RANK = 0; then " + rank_0 + "; fi; read line <" + fifo + "; " + kFail;
  variables["TMPDIR"] = of_host.path();
  Job& host = StartHost({"-n1", "--node-rank=0"}, script);
  variables["TMPDIR"] = of_guest.path();
  Job& guest = StartGuest({"-n1", "--node-rank=1"}, script);
  EXPECT_TRUE(host.Wait() && guest.Wait()) << Errors();
  EXPECT_THAT(host.Err(), HasSubstr(of_host.path())) << Errors();
  EXPECT_THAT(guest.Err(), HasSubstr(of_guest.path())) << Errors();
}

}  // namespace
}  // namespace rankrun::testing

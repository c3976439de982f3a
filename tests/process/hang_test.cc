// Jobs in which a rank does not come while others wait for it.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "tests/paths.h"
#include "tests/process/harness.h"
#include "tests/process/nodes.h"
#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHanger = test::Program("hanger");
const std::string kIdler = test::Program("idler");

struct HangTimingTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  static std::vector<std::string> Hang(std::vector<std::string> flags,
                                       const std::vector<std::string>& how) {
    flags.insert(flags.end(), {"-n", "4", "--shutdown-timeout=2", "--no-python", kHanger});
    flags.insert(flags.end(), how.begin(), how.end());
    return flags;
  }

  // Runs a job in which `suspects` hang, and checks that it ends for that reason.
  static std::string Report(const std::vector<std::string>& how, const std::string& cause) {
    Job job({.arguments = Hang({"--hang-notice=0.3", "--hang-timeout=1"}, how)});
    EXPECT_EQ(job.Wait(), Code(203)) << job.Err();
    EXPECT_TRUE(NothingIsLeft(milliseconds(5'000)));
    EXPECT_THAT(job.Err(), HasSubstr("cause: " + cause));
    return job.Err();
  }
};

TEST_F(HangTimingTest, NamesARankThatIsStopped) {
  std::string text = Report({"stop"}, "rank 2 ");
  EXPECT_THAT(text, HasSubstr("rankrun: ranks 0, 1, 3 wait in Barrier #6 of world for rank 2, "
                              "which is stopped (SIGSTOP) after Barrier #5 of world; for "));
  EXPECT_THAT(text, HasSubstr("hung: stopped (SIGSTOP) after Barrier #5 of world; "));
}

TEST_F(HangTimingTest, NamesARankThatSleeps) {
  EXPECT_THAT(Report({"sleep"}, "rank 2 "), HasSubstr("hung: sleeping (clock_nanosleep)"));
}

TEST_F(HangTimingTest, NamesARankThatSpins) {
  EXPECT_THAT(Report({"spin"}, "rank 2 "), HasSubstr("hung: spinning or computing"));
}

TEST_F(HangTimingTest, NamesTheFileThatARankReads) {
  ScratchFolder folder;
  ASSERT_EQ(mkfifo(folder.Path("fifo").c_str(), 0600), 0);
  EXPECT_THAT(Report({"read", folder.Path("fifo")}, "rank 2 "),
              HasSubstr("hung: reading " + folder.Path("fifo") + " (read)"));
}

TEST_F(HangTimingTest, NamesARankThatWaitsForItsOwnLock) {
  EXPECT_THAT(Report({"lock"}, "rank 2 "), HasSubstr("hung: waiting for a lock (futex)"));
}

TEST_F(HangTimingTest, NamesBothRanksThatEnterGroupsInOppositeOrder) {
  std::string text = Report({"groups"}, "rank 1 ");
  EXPECT_THAT(text, HasSubstr("dead-lock: rank 1 waits in Barrier #1 of "));
  EXPECT_THAT(text, HasSubstr("; rank 2 waits in Barrier #1 of "));
}

TEST_F(HangTimingTest, NamesARingOfReceives) {
  EXPECT_THAT(Report({"ring"}, "rank "),
              HasSubstr("dead-lock: rank 0 waits for a message from global rank 3"));
}

TEST_F(HangTimingTest, NamesTheRankThatNeverCallsInit) {
  EXPECT_THAT(Report({"no_init"}, "rank 1 "), HasSubstr("hung: sleeping (clock_nanosleep)"));
}

TEST_F(HangTimingTest, NamesTheRankForWhichOthersWaitWithWorkUnderWay) {
  for (const std::string how : {"work", "future", "destroy"}) {
    EXPECT_THAT(Report({how}, "rank 2 "),
                HasSubstr("rankrun: ranks 0, 1, 3 wait in Barrier #6 of world for rank 2"))
        << how;
  }
}

TEST_F(HangTimingTest, NamesTheRankForWhichAThreadOfOthersWaits) {
  EXPECT_THAT(Report({"thread"}, "rank 2 "),
              HasSubstr("rankrun: ranks 0, 1, 3 wait for key never of the store, which rank 2 has "
                        "not set; rank 2 is sleeping"));
}

TEST_F(HangTimingTest, RanksThatAllWaitForAKeyThatNobodySetsHang) {
  Job job({.arguments = Hang({"--hang-timeout=1"}, {"key"})});
  EXPECT_EQ(job.Wait(), Code(203)) << job.Err();
  EXPECT_THAT(job.Err(), HasSubstr("no worker has made progress for "));
}

// Each job is idle for more than twice the time of a verdict.
void ExpectHealthy(const std::vector<std::string>& kinds) {
  std::vector<std::unique_ptr<Job>> jobs;
  for (const std::string& kind : kinds) {
    jobs.push_back(std::make_unique<Job>(
        Job::Options{.arguments = {"-n", "2", "--hang-notice=3", "--hang-timeout=3",
                                   "--shutdown-timeout=2", "--no-python", kIdler, kind, "6.5"}}));
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(jobs[i]->Wait(), Code(0)) << kinds[i] << ": " << jobs[i]->Err();
    // A slow start may have a notice about Init.
    for (const char* wait : {"dead-lock", "AllReduce", "news", "message"}) {
      EXPECT_THAT(jobs[i]->Err(), Not(HasSubstr(wait))) << kinds[i];
    }
  }
}

TEST_F(HangTimingTest, RpcThatIsIdleIsHealthy) {
  ExpectHealthy({"rpc", "rpc_of_group", "dynamic_rpc", "dynamic_rpc_rest", "rpc_server"});
}

TEST_F(HangTimingTest, ProgramsThatWorkOrSleepAreHealthy) {
  ExpectHealthy({"sleep", "compute", "work", "message", "join"});
}

TEST_F(HangTimingTest, AThreadThatWatchesTheStoreIsNoWaitOfItsRank) {
  ExpectHealthy({"watcher", "watcher_compute"});
}

TEST_F(HangTimingTest, ARestartUsesTheBudget) {
  Job job({.arguments = Hang({"--hang-timeout=0.5", "--max-restarts=1"}, {"sleep"})});
  EXPECT_EQ(job.Wait(), Code(203)) << job.Err();
  EXPECT_THAT(job.Err(), HasSubstr("next: restart 1 of 1"));
  EXPECT_THAT(job.Err(), HasSubstr("1 of 1 restarts used; exit code 203"));
}

TEST_F(HangTimingTest, WithoutATimeoutThereAreOnlyNotices) {
  Job job({.arguments = Hang({"--hang-notice=0.2"}, {"sleep"})});
  EXPECT_TRUE(job.WaitForErr("for rank 2, which is sleeping (clock_nanosleep)")) << job.Err();
  EXPECT_FALSE(job.Wait(milliseconds(500)));
  job.Signal(SIGINT);
  EXPECT_EQ(job.Wait(), KilledBy(SIGINT));
}

TEST_F(HangTimingTest, NoNoticeWhileNobodyWaits) {
  Job job({.arguments = Hang({"--hang-notice=1.5", "--hang-timeout=2"}, {"compute"})});
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_THAT(job.Err(), Not(HasSubstr("wait")));
}

TEST_F(HangTimingTest, ASlowRankIsNotEnded) {
  Job job({.arguments = Hang({"--hang-timeout=5"}, {"slow"})});
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
}

TEST_F(HangTimingTest, ASavingRankIsNotEnded) {
  Job job({.arguments = Hang({"--hang-notice=0.3", "--hang-timeout=1"}, {"save"})});
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_THAT(job.Err(), HasSubstr("for rank 2, which is saving a checkpoint"));
}

TEST_F(HangTimingTest, WorkersThatWereStoppedByTheUserDoNotHang) {
  Job job({.arguments = Hang({"--hang-timeout=1"}, {"compute"})});
  job.Workers(4);
  job.Signal(SIGTSTP);
  EXPECT_FALSE(job.Wait(milliseconds(1'500)));
  kill(job.pid(), SIGCONT);
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
}

TEST_F(HangTimingTest, AProgramWithoutTheLibraryHangsIfNobodyDoesAnything) {
  Job job({.arguments = Shell({"-n", "3", "--hang-timeout=1"},
                              "[ $RANK = 1 ] && exec sleep 100; read line </dev/zero")});
  // Ranks 0 and 2 use the processor as long as they read.
  EXPECT_FALSE(job.Wait(milliseconds(1'500)));
  job.Signal(SIGKILL);
  Job idle({.arguments = Shell({"-n", "3", "--hang-timeout=1"}, "exec sleep 100")});
  EXPECT_EQ(idle.Wait(), Code(203)) << idle.Err();
  EXPECT_THAT(idle.Err(), HasSubstr("no worker has made progress for "));
}

TEST_F(HangTimingTest, AWorkerThatDoesNotFinishAfterTheFirstEndsTheJob) {
  Job job({.arguments = Shell({"-n", "3", "--finish-timeout=0.5", "--max-restarts=2"},
                              "[ $RANK = 1 ] || exec sleep 100")});
  EXPECT_EQ(job.Wait(), Code(203)) << job.Err();
  EXPECT_TRUE(NothingIsLeft(milliseconds(5'000)));
  EXPECT_THAT(
      job.Err(),
      ContainsRegex("not finished 0.500 s after the first worker \\(--finish-timeout\\): rank 1 "
                    "ended [0-9.]+ s ago with exit code 0; ranks 0, 2 still run, and nothing "
                    "visible shows whether they wait for rank 1; stopping the workers"));
  EXPECT_THAT(job.Err(), HasSubstr("cause: rank 0 "));
  EXPECT_THAT(job.Err(), HasSubstr("next: the end, a restart would not help, because other "
                                   "workers have finished; exit code 203"));
}

TEST_F(HangTimingTest, ARankThatEndsWhileOthersNeedItIsTheCause) {
  Job job({.arguments = Shell({"-n", "3", "--finish-timeout=3"},
                              "[ $RANK = 0 ] || exec " + kRankctl + " store wait never")});
  EXPECT_EQ(job.Wait(), Code(203)) << job.Err();
  EXPECT_THAT(job.Err(),
              ContainsRegex("cause: rank 0 \\(pid [0-9]+\\): ended with exit code 0 while ranks 1, "
                            "2 wait for key never of the store \\(--finish-timeout\\)"));
}

TEST_F(HangTimingTest, RanksThatSleepOrSpinAfterAnotherHasEndedAreNoticed) {
  for (const std::string how : {"exec sleep 100", "while :; do :; done"}) {
    Job job({.arguments = Shell({"-n", "2", "--hang-notice=0.3"}, "[ $RANK = 0 ] || " + how)});
    EXPECT_TRUE(
        job.WaitForErr("; rank 1 still runs, and nothing visible shows whether it waits "
                       "for rank 0; rank 1 is s"))
        << job.Err();
    job.Signal(SIGINT);
    EXPECT_EQ(job.Wait(), KilledBy(SIGINT));
  }
}

TEST_F(HangTimingTest, ALongTailIsNoFailure) {
  ScratchFolder folder;
  const std::string until = "end=$(($(date +%s) + 2)); while [ $(date +%s) -lt $end ]; do ";
  Job saves({.arguments = Shell({"-n", "3", "--hang-notice=1", "--hang-timeout=3"},
                                "[ $RANK != 0 ] && exit; " + until + "printf %0100000d 0 > '" +
                                    folder.Path("checkpoint") + "'; done")});
  EXPECT_EQ(saves.Wait(), Code(0)) << saves.Err();
  EXPECT_EQ(saves.Err(), "");
  Job computes({.arguments = Shell({"-n", "3", "--hang-notice=0.3", "--hang-timeout=1"},
                                   "[ $RANK != 0 ] && exit; " + until + ":; done")});
  EXPECT_EQ(computes.Wait(), Code(0)) << computes.Err();
  EXPECT_THAT(computes.Err(), Not(HasSubstr("cause")));
}

struct NodesHangTimingTest : NodesTest {};

TEST_F(NodesHangTimingTest, ARankThatSleepsAfterThoseOfAnotherNodeHaveEndedIsNoticed) {
  const std::string script = "[ $RANK = 0 ] || exec sleep 100";
  Job& host = StartHost({"-n", "1", "--node-rank=0", "--hang-notice=0.5"}, script);
  Job& guest = StartGuest({"-n", "1", "--node-rank=1", "--hang-notice=0.5"}, script);
  EXPECT_TRUE(
      host.WaitForErr("with exit code 0; rank 1 still runs, and nothing visible shows "
                      "whether it waits for rank 0; rank 1 is sleeping"))
      << Errors();
  host.Signal(SIGINT);
  EXPECT_EQ(host.Wait(), KilledBy(SIGINT));
  EXPECT_TRUE(guest.Wait());
}

TEST_F(NodesHangTimingTest, TheCoordinatorNamesARankOfAnotherNode) {
  std::vector<std::string> flags = {"-n", "2", "--hang-notice=0.3", "--hang-timeout=1.5"};
  std::string script = "exec " + kHanger + " stop";
  Job& host = StartHost(flags, script);
  Job& guest = StartGuest(flags, script);
  EXPECT_EQ(host.Wait(), Code(203)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(203)) << Errors();
  EXPECT_THAT(Errors(), HasSubstr("ranks 0, 1, 3 wait in Barrier #6 of world for rank 2, which is "
                                  "stopped (SIGSTOP)"));
  EXPECT_THAT(host.Err(), HasSubstr("hung: stopped (SIGSTOP) after Barrier #5 of world"));
}

TEST_F(NodesHangTimingTest, ANodeWhoseWorkersHaveAllSucceededIsPartOfTheRollCall) {
  std::vector<std::string> flags = {"-n", "2", "--hang-timeout=1"};
  const std::string script = "[ $RANK -lt 2 ] && exec sleep 100; exit 0";
  Job& host = StartHost(flags, script);
  Job& guest = StartGuest(flags, script);
  EXPECT_EQ(host.Wait(), Code(203)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(203)) << Errors();
  EXPECT_THAT(Errors(), HasSubstr("no worker has made progress for "));
}

TEST_F(NodesHangTimingTest, ACoordinatorWhoseWorkersHaveAllSucceededJudgesTheOthers) {
  std::vector<std::string> flags = {"-n", "2", "--hang-timeout=1"};
  const std::string script = "[ $RANK -ge 2 ] && exec sleep 100; exit 0";
  Job& host = StartHost(flags, script);
  Job& guest = StartGuest(flags, script);
  EXPECT_EQ(host.Wait(), Code(203)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(203)) << Errors();
  EXPECT_THAT(Errors(), HasSubstr("no worker has made progress for "));
}

// The function is one of torch.distributed by the folder of its file.
TEST_F(NodesHangTimingTest, StacksOfAllNodesNameTheOnlyRankInNoCollective) {
  if (access(kPython, X_OK) != 0) GTEST_SKIP() << "there is no " << kPython;
  const std::string module = folder.Path("torch/distributed");
  std::filesystem::create_directories(module);
  std::ofstream(module + "/fake.py") << "import threading\n"
                                        "def barrier():\n"
                                        "    lock = threading.Lock()\n"
                                        "    lock.acquire()\n"
                                        "    lock.acquire()\n";
  std::ofstream(folder.Path("train.py")) << "import os, subprocess, sys\n"
                                            "sys.path.insert(0, os.path.abspath(sys.argv[1]))\n"
                                            "import fake\n"
                                            "def upload():\n"
                                            "    subprocess.run(['sleep', '1000'])\n"
                                            "if os.environ['RANK'] == '1':\n"
                                            "    upload()\n"
                                            "fake.barrier()\n";
  const std::vector<std::string> flags = {"--hang-timeout=2"};
  const std::string script = std::string("exec ") + kPython + " train.py torch/distributed";
  Job& host = StartHost(flags, script);
  Job& guest = StartGuest(flags, script);
  EXPECT_EQ(host.Wait(), Code(203)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(203)) << Errors();
  for (const Job* node : {&host, &guest}) {
    EXPECT_THAT(node->Err(), ContainsRegex("cause: rank 1 .*hung: in wait4\\(\\) <- .*, while all "
                                           "others are in barrier; no worker has made progress"));
  }
}

}  // namespace
}  // namespace rankrun::testing

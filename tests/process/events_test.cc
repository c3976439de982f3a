// Interfaces for programs that start a job: --events and --lifeline.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct EventsTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  std::vector<json> Events() const {
    std::istringstream text(ReadText(file));
    std::vector<json> events;
    for (std::string line; std::getline(text, line);) events.push_back(json::parse(line));
    return events;
  }
  std::vector<std::string> Kinds() const {
    std::vector<std::string> kinds;
    for (const json& event : Events()) kinds.push_back(event["event"]);
    return kinds;
  }
  json Last(const std::string& kind) const {
    json last;
    for (const json& event : Events()) {
      if (event["event"] == kind) last = event;
    }
    return last;
  }

  ScratchFolder folder;
  std::string file = folder.Path("events");
};

TEST_F(EventsTest, AJobThatFailsAndSucceedsIsToldInOrder) {
  Job run({.arguments = Shell({"--max-restarts", "1", "--events", file},
                              "test $TORCHELASTIC_RESTART_COUNT = 1 || exit 3")});
  EXPECT_EQ(run.Wait(), Code(0));
  std::vector<std::string> kinds = Kinds();
  // A report is written to disk first, so its position varies.
  EXPECT_EQ(std::erase(kinds, "report"), 1u);
  EXPECT_THAT(kinds, ElementsAre("job_started", "attempt_started", "worker_started", "worker_ended",
                                 "restart", "attempt_started", "worker_started", "worker_ended",
                                 "job_ended"));
  EXPECT_EQ(Last("job_started")["guardian_pid"], run.pid());
  EXPECT_EQ(Last("restart")["why"], "rank 0 failed: exit code 3");
  EXPECT_EQ(Last("report")["text"], run.Err());
  EXPECT_EQ(Last("job_ended")["restarts"], 1);
}

TEST_F(EventsTest, TheEndOfAFailedJobNamesTheCauseAndItsException) {
  Job run({.arguments = Shell({"-n", "2", "--events", file},
                              "if test $RANK = 1; then echo '{\"message\": \"ValueError: no\"}' "
                              ">$TORCHELASTIC_ERROR_FILE; exit 7; fi; sleep 1000")});
  EXPECT_EQ(run.Wait(), Code(7));
  EXPECT_EQ(Last("report")["cause"]["exception"], "ValueError: no");
  EXPECT_EQ(Last("report")["consequences"][0]["sent_by_rankrun"], true);
  EXPECT_EQ(Last("job_ended")["exit_code"], 7);
  EXPECT_EQ(Last("job_ended")["why"], "rank 1 failed: exit code 7");
}

TEST_F(EventsTest, ARequestAndAKillAreTold) {
  Job run({.arguments = Shell({"--shutdown-timeout", "0.2", "--events", file},
                              "trap '' INT; echo up; while :; do sleep 0.01; done")});
  ASSERT_TRUE(run.WaitForOut("up"));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = true, .value = SIGINT}));
  EXPECT_EQ(Last("stop_begun")["why"], "stopped by SIGINT");
  EXPECT_EQ(Last("kill")["why"], "the shutdown timeout of 0.200 s has passed");
  EXPECT_EQ(Last("worker_ended")["signal"], SIGKILL);
  EXPECT_EQ(Last("job_ended")["signal"], SIGINT);
}

TEST_F(EventsTest, TheEndOfTheJobsTimeIsTold) {
  Job run({.arguments = Shell({"--timeout", "0.1", "--events", file}, "exec sleep 1000")});
  EXPECT_EQ(run.Wait(), Code(124));
  EXPECT_EQ(Last("stop_begun")["why"], "the job's time (--timeout 0.100 s) is over");
  EXPECT_EQ(Last("job_ended")["why"], Last("stop_begun")["why"]);
  EXPECT_EQ(Last("job_ended")["exit_code"], 124);
}

TEST_F(EventsTest, ASignalThatIsNotHandledIsTold) {
  Job run({.arguments = Shell({"--signals-to-handle", "SIGTERM", "--events", file},
                              "echo up; exec sleep 1000")});
  ASSERT_TRUE(run.WaitForOut("up"));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = true, .value = SIGINT}));
  EXPECT_EQ(Last("stop_begun")["why"], "stopped by SIGINT");
  EXPECT_EQ(Last("kill")["why"], "SIGINT is not one of --signals-to-handle");
}

TEST_F(EventsTest, ThePauseBeforeARestartIsTold) {
  Job run({.arguments = Shell({"--max-restarts", "2", "--events", file},
                              "test $TORCHELASTIC_RESTART_COUNT = 2 || exit 3")});
  EXPECT_EQ(run.Wait(), Code(0));
  EXPECT_EQ(Last("restart")["number"], 2);
  EXPECT_EQ(Last("restart")["delay"], 1.0);
}

TEST_F(EventsTest, WhatIsLeftBehindIsTold) {
  Job run({.arguments = Shell({"--events", file}, "setsid sleep 1000 & exit 0")});
  EXPECT_EQ(run.Wait(), Code(0));
  EXPECT_EQ(Last("left_behind")["signal"], SIGTERM);
}

TEST_F(EventsTest, ARefusedProgramIsTold) {
  Job run({.arguments = {"--events", file, "no-such-program-here"}});
  EXPECT_EQ(run.Wait(), Code(127));
  EXPECT_THAT(Kinds(), ElementsAre("refused"));
  EXPECT_EQ("rankrun: " + Last("refused")["why"].get<std::string>() + "\n", run.Err());
}

TEST_F(EventsTest, AFileThatCannotBeOpenedIsRefused) {
  Job run({.arguments = Shell({"--events", "/no/such/file"}, "exit 0")});
  EXPECT_EQ(run.Wait(), Code(2));
  EXPECT_EQ(run.Err(), "rankrun: --events /no/such/file: No such file or directory\n");
}

TEST_F(EventsTest, AFullDiskIsSaidOnceAndHarmsNothing) {
  Job run({.arguments = Shell({"--events", "/dev/full"}, "echo done")});
  EXPECT_EQ(run.Wait(), Code(0));
  EXPECT_EQ(run.Out(), "done\n");
  EXPECT_EQ(run.Err(), "rankrun: --events /dev/full: lines are lost: No space left on device\n");
}

// The reader of the pipe never reads.
TEST_F(EventsTest, AFullPipeHoldsTheEndUpForASecondAtMost) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  while (write(write_end.get(), "x", 1) > 0) {
  }
  auto begin = std::chrono::steady_clock::now();
  Job run({.arguments = Shell({"--events", "/dev/fd/9"}, "exit 0"),
           .in_child = [&] { dup2(write_end.get(), 9); }});
  EXPECT_EQ(run.Wait(), Code(0));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(EventsTest, AJobEndsWithItsLifeline) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  Job run({.arguments = Shell({"-n", "2", "--prefix", "none", "--lifeline", "9", "--events", file},
                              "echo up; test ! -e /proc/self/fd/9 || exit 9; exec sleep 1000"),
           .in_child = [&] { dup2(read_end.get(), 9); }});
  ASSERT_TRUE(run.WaitForOut("up\nup\n"));
  write_end.Reset();
  EXPECT_EQ(run.Wait(), (ProcessExit{.signaled = true, .value = SIGTERM}));
  EXPECT_THAT(run.Err(), HasSubstr("--lifeline: the program that started this job has ended"));
  EXPECT_EQ(Last("stop_begun")["why"], "stopped by SIGTERM");
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

// A shell script stands for mpirun: its process has the script's name. A shell is between the two.
TEST_F(EventsTest, AJobEndsWithTheMpirunThatStartedIt) {
  ScratchFolder bin;
  std::string mpirun = bin.Script("mpirun", "OMPI_COMM_WORLD_RANK=0 sh -c '\"$@\"; true' - \"$@\"");
  std::vector<std::string> command = Shell(
      {"-n2", "--standalone", "--prefix", "none", "--events", file}, "echo up; exec sleep 1000");
  command.insert(command.begin(), test::Program("rankrun"));
  Job run({.arguments = command, .program = mpirun});
  ASSERT_TRUE(run.WaitForOut("up\nup\n"));
  run.Signal(SIGKILL);
  EXPECT_EQ(run.Wait(), KilledBy(SIGKILL));
  EXPECT_TRUE(NothingIsLeft(milliseconds(20'000)));
  EXPECT_THAT(run.Err(),
              HasSubstr("rankrun: mpirun (pid " + std::to_string(run.pid()) + ") has ended\n"));
  EXPECT_EQ(Last("stop_begun")["why"], "stopped by SIGTERM");
}

TEST_F(EventsTest, ALifelineThatIsNoneIsRefused) {
  Job run({.arguments = Shell({"--lifeline", "777", "--events", file}, "exit 0")});
  EXPECT_EQ(run.Wait(), Code(2));
  EXPECT_EQ(run.Err(), "rankrun: --lifeline 777: want an open descriptor that can be read\n");
  EXPECT_THAT(Kinds(), ElementsAre("refused"));
}

}  // namespace
}  // namespace rankrun::testing

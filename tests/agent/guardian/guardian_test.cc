// The guardian, with agents of a few lines each.

#include "agent/guardian/guardian.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <iostream>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct GuardianTest : testing::Test {
  ~GuardianTest() override {
    if (guardian == 0) return;
    kill(guardian, SIGKILL);
    waitpid(guardian, nullptr, 0);
  }

  void Guard(const std::function<void(Incarnation&)>& agent_main) {
    guardian = test::Fork([&] {
      Fd err(open(err_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
      dup2(err.get(), 2);
      RunGuarded({.agent_main = agent_main,
                  .on_end = [](const JobRecord& job, const Goodbye& end, const std::string& why) {
                    std::cerr << "end of " << job.state << " with " << end.exit_code
                              << " by signal " << end.end_signal << ": " << why << '\n';
                  }});
      return 0;
    });
  }
  ProcessExit Wait() {
    std::optional<ProcessExit> exit;
    EXPECT_TRUE(test::WaitFor([&] { return (exit = ReapByPid(guardian)).has_value(); })) << Err();
    if (exit) guardian = 0;
    return exit.value_or(ProcessExit{});
  }
  std::string Err() const { return test::ReadWholeFile(err_path); }

  // Lets the job continue after the agent's death.
  static void AllowRestart(Incarnation& life) {
    JobRecord record = life.record();
    record.may_restart = true;
    record.state = "round 7";
    life.Write(record);
  }
  static void SayGoodbye(Incarnation& life, int exit_code) {
    life.link().Send(Goodbye{.exit_code = exit_code, .end_signal = 0});
    _exit(0);
  }
  void Tell(std::string_view word) const {
    EXPECT_EQ(write(words.write_end.get(), word.data(), word.size()),
              static_cast<ssize_t>(word.size()));
  }
  char Hear() const {
    char letter = 0;
    EXPECT_EQ(read(words.read_end.get(), &letter, 1), 1);
    return letter;
  }

  test::TempFolder folder;
  std::string err_path = folder.Path("err");
  test::Pipe words = test::MakePipe();
  pid_t guardian = 0;
};

TEST_F(GuardianTest, AnAgentsDeathWithoutARecordIsTheEnd) {
  Guard([](Incarnation&) { raise(SIGKILL); });
  EXPECT_EQ(Wait(), (ProcessExit{.signaled = false, .value = kExitInternalError}));
  EXPECT_THAT(Err(), AllOf(HasSubstr("was killed by SIGKILL in the middle of the job"),
                           HasSubstr("end of  with 205 by signal 0: the agent (pid "),
                           Not(HasSubstr("starting"))));
}

TEST_F(GuardianTest, TheNextIncarnationReadsThePreviousRecord) {
  Guard([](Incarnation& life) {
    if (life.is_first()) {
      AllowRestart(life);
      test::Fork([] { return pause(); });
      raise(SIGKILL);
    }
    bool right = life.record().incarnation == 1 && life.record().state == "round 7" &&
                 life.record().node_id != 0 && test::HasNoChild();
    right = right && life.record().last_end.ends_with("1 processes below it were killed");
    SayGoodbye(life, right ? 7 : 8);
  });
  EXPECT_EQ(Wait(), (ProcessExit{.signaled = false, .value = 7}));
  EXPECT_THAT(Err(), HasSubstr("was killed by SIGKILL; 1 processes below it were killed, nothing "
                               "of the job is left; starting again\n"));
}

TEST_F(GuardianTest, ASilentAgentIsKilledAfterItsLeaseWithAllBelowIt) {
  Guard([](Incarnation& life) {
    if (!life.is_first()) SayGoodbye(life, 7);
    AllowRestart(life);
    test::Fork([] { return pause(); });
    life.link().Send(Heartbeat{milliseconds(100)});
    raise(SIGSTOP);
  });
  EXPECT_EQ(Wait(), (ProcessExit{.signaled = false, .value = 7}));
  EXPECT_THAT(Err(), ::testing::ContainsRegex(
                         "had been silent for 0\\.100 s \\(state [Tt].*\\) and was killed; "));
  EXPECT_THAT(Err(), HasSubstr("nothing of the job is left; starting again\n"));
}

// Stopped by Ctrl-Z, for longer than the lease.
TEST_F(GuardianTest, AStoppedGuardianDoesNotHoldItsOwnSilenceAgainstTheAgent) {
  constexpr milliseconds kLease{4'000};
  test::Pipe commands = test::MakePipe();
  Guard([&](Incarnation& life) {
    life.link().Send(Heartbeat{kLease});
    Tell("x");
    char letter;
    SayGoodbye(life, read(commands.read_end.get(), &letter, 1) == 1 ? 7 : 8);
  });
  Hear();
  kill(guardian, SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(guardian), &info, WSTOPPED), 0);
  TimePoint stopped = std::chrono::steady_clock::now();
  test::WaitFor([&] { return std::chrono::steady_clock::now() - stopped > kLease * 3 / 2; });
  kill(guardian, SIGCONT);
  EXPECT_EQ(write(commands.write_end.get(), "x", 1), 1);
  EXPECT_EQ(Wait(), (ProcessExit{.signaled = false, .value = 7})) << Err();
  EXPECT_EQ(Err(), "");
}

TEST_F(GuardianTest, ARequestToStopEndsThePauseBetweenTwoAgents) {
  Guard([](Incarnation& life) {
    AllowRestart(life);
    raise(SIGKILL);
  });
  ASSERT_TRUE(test::WaitFor([&] {
    return Err().find("; starting again in 0.800 s\n") != std::string::npos;
  })) << Err();
  kill(guardian, SIGINT);
  EXPECT_EQ(Wait(), (ProcessExit{.signaled = true, .value = SIGINT}));
  EXPECT_THAT(Err(), AllOf(HasSubstr("rankrun: SIGINT: not starting again\n"),
                           HasSubstr("end of round 7 with 205 by signal 2: ")));
}

TEST_F(GuardianTest, TheGuardianRemovesTheTemporaryFolder) {
  std::string base = folder.Path("rankrun-x");
  folder.Write("rankrun-x/job_1/attempt_0/0/error.json", "{}");
  Guard([&](Incarnation& life) {
    JobRecord record = life.record();
    record.folder = JobFolder{.temporary_base = base, .path = base + "/job_1"};
    life.Write(record);
    raise(SIGKILL);
  });
  EXPECT_EQ(Wait(), (ProcessExit{.signaled = false, .value = kExitInternalError}));
  EXPECT_FALSE(std::filesystem::exists(base));
}

}  // namespace
}  // namespace rankrun::agent

// --metrics: what a job shows to Prometheus, and to clients that are no friends.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/free_port.h"
#include "tests/process/harness.h"
#include "tests/process/nodes.h"
#include "tests/process/observers/http_client.h"

namespace rankrun::testing {
namespace {

using test::FreePort;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct MetricsTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  std::vector<std::string> Flags(std::vector<std::string> flags = {}) const {
    flags.push_back("--metrics=" + std::to_string(port));
    return flags;
  }
  bool WaitForMetric(const std::string& line) const {
    return WaitFor([&] { return Scrape(port).find("\n" + line + "\n") != std::string::npos; });
  }
  // A script that runs until this file is there.
  std::string UntilTold() const {
    return "while ! test -e " + folder.Path("go") + "; do sleep 0.01; done";
  }
  void Tell() const { folder.Script("go", ""); }

  ScratchFolder folder;
  int port = FreePort();
};

TEST_F(MetricsTest, ARunningJobIsDescribed) {
  Job run({.arguments = Shell(Flags({"-n3", "--rdzv-id=job-7", "--max-restarts=2"}), UntilTold())});
  ASSERT_TRUE(WaitForMetric("rankrun_workers{state=\"running\"} 3")) << run.Err();
  std::string response = Scrape(port);
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(response, HasSubstr("run_id=\"job-7\""));
  EXPECT_THAT(response,
              AllOf(HasSubstr("\nrankrun_world_size 3\n"), HasSubstr("\nrankrun_max_restarts 2\n"),
                    HasSubstr("\nrankrun_attempt 0\n"), HasSubstr("\nrankrun_store_keys 0\n")));
  Tell();
  EXPECT_EQ(run.Wait(), Code(0));
  EXPECT_FALSE(Connect(port));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(MetricsTest, AFailureAndItsRestartAreCounted) {
  Job run({.arguments = Shell(Flags({"-n2", "--max-restarts=1"}),
                              "test $TORCHELASTIC_RESTART_COUNT = 1 || test $RANK = 0 || "
                              "kill -9 $$; " +
                                  UntilTold())});
  ASSERT_TRUE(WaitForMetric("rankrun_attempt 1"));
  ASSERT_TRUE(WaitForMetric("rankrun_failures_total{kind=\"signal\"} 1"));
  EXPECT_TRUE(WaitForMetric("rankrun_restarts_total{budget=\"counted\"} 1"));
  Tell();
  EXPECT_EQ(run.Wait(), Code(0));
}

TEST_F(MetricsTest, StepsByTheNamedPipeGiveGoodput) {
  Job run({.arguments = Shell(Flags({"-n2"}),
                              "for step in 1 2 3; do echo \"$RANK step $step\" "
                              ">\"$RANKRUN_SAVE_FIFO\"; sleep 0.01; done; " +
                                  UntilTold())});
  EXPECT_TRUE(WaitForMetric("rankrun_step{rank=\"0\"} 3"));
  EXPECT_TRUE(WaitForMetric("rankrun_step{rank=\"1\"} 3"));
  EXPECT_TRUE(WaitForMetric("rankrun_steps_total 3"));
  EXPECT_THAT(Scrape(port), AllOf(HasSubstr("\nrankrun_goodput_ratio 0."),
                                  HasSubstr("\nrankrun_repeated_steps_total 0\n")));
  Tell();
  EXPECT_EQ(run.Wait(), Code(0));
}

TEST_F(MetricsTest, TheDeathOfAnAgentIsAFailure) {
  Job run({.arguments = Shell(Flags({"--max-restarts=1"}), UntilTold())});
  ASSERT_TRUE(WaitForMetric("rankrun_workers{state=\"running\"} 1"));
  kill(run.Agent(), SIGKILL);
  EXPECT_TRUE(WaitForMetric("rankrun_failures_total{kind=\"agent_lost\"} 1")) << run.Err();
  Tell();
  EXPECT_EQ(run.Wait(), Code(0)) << run.Err();
}

TEST_F(MetricsTest, AnAgentThatCannotServeThemContinuesTheJob) {
  const std::string path = folder.Path("metrics.sock");
  Job run({.arguments =
               Shell({"--metrics=unix:" + path, "--max-restarts=1"}, "echo up; " + UntilTold())});
  ASSERT_TRUE(run.WaitForOut("up"));
  ASSERT_EQ(unlink(path.c_str()), 0);
  folder.Script("metrics.sock", "");  // no socket, so it is not replaced
  kill(run.Agent(), SIGKILL);
  EXPECT_TRUE(run.WaitForOut("up\nup")) << run.Err();
  Tell();
  EXPECT_EQ(run.Wait(), Code(0)) << run.Err();
  EXPECT_THAT(run.Err(), HasSubstr("rankrun: --metrics unix:" + path +
                                   ": exists and is no socket; the job continues without metrics"));
}

TEST_F(MetricsTest, HostileClientsGetShortAnswers) {
  Job run({.arguments = Shell(Flags(), UntilTold())});
  ASSERT_TRUE(WaitForMetric("rankrun_attempt 0"));
  EXPECT_THAT(Exchange(port, "GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(Exchange(port, "POST /metrics HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(Exchange(port, std::string("\x16\x03\x01\x00", 4)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(Exchange(port, "GET /metrics HTTP/1.1\r\nA: " + std::string(10'000, 'a')),
              StartsWith("HTTP/1.1 431 "));
  Tell();
  EXPECT_EQ(run.Wait(), Code(0));
}

TEST_F(MetricsTest, AnotherNameOfThisMachineIsRefused) {
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: evil.example:80\r\n\r\n";
  {
    Job run({.arguments = Shell(Flags(), UntilTold())});
    ASSERT_TRUE(WaitForMetric("rankrun_attempt 0"));
    const std::string answer = Exchange(port, request);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 421 "));
    EXPECT_THAT(answer, HasSubstr("want a numeric address, localhost or a name of this machine"));
  }
  port = FreePort();  // the agent of the first job may not have ended
  Job open({.arguments = Shell(Flags({"--metrics-open"}), UntilTold())});
  ASSERT_TRUE(WaitForMetric("rankrun_attempt 0"));
  EXPECT_THAT(Exchange(port, request), StartsWith("HTTP/1.1 200 "));
}

TEST_F(MetricsTest, AnotherUserOfThisHostIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  const auto status_for_nobody = [&] {
    const pid_t pid = fork();
    if (pid == 0) {
      constexpr uid_t kNobody = 65534;
      if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(99);
      const std::string answer = Scrape(port);
      _exit(answer.starts_with("HTTP/1.1 403 ") ? 3 : answer.starts_with("HTTP/1.1 200 ") ? 2 : 4);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WEXITSTATUS(status);
  };
  {
    Job run({.arguments = Shell(Flags(), UntilTold())});
    ASSERT_TRUE(WaitForMetric("rankrun_attempt 0"));
    EXPECT_EQ(status_for_nobody(), 3);
    EXPECT_EQ(status_for_nobody(), 3);
    EXPECT_TRUE(run.WaitForErr(
        "--metrics: refused a program of user 65534; --metrics-open admits all users"));
  }
  port = FreePort();  // the agent of the first job may not have ended
  Job open({.arguments = Shell(Flags({"--metrics-open"}), UntilTold())});
  ASSERT_TRUE(WaitForMetric("rankrun_attempt 0"));
  EXPECT_EQ(status_for_nobody(), 2);
}

TEST_F(MetricsTest, AHeadWithoutEndIsDroppedAndTakesNoMemory) {
  Job run({.arguments = Shell(Flags(), UntilTold())});
  ASSERT_TRUE(WaitForMetric("rankrun_attempt 0"));
  Fd client = Connect(port);
  const std::string part(1024 * 1024, 'a');
  EXPECT_TRUE(Send(client, "GET /metrics HTTP/1.1\r\nA: "));
  int sent = 0;
  while (sent < 100 && Send(client, part)) sent += 1;  // the agent may close it before
  std::string status = ReadText("/proc/" + std::to_string(run.Agent()) + "/status");
  const size_t peak = status.find("VmHWM:");
  ASSERT_NE(peak, status.npos);
  EXPECT_LT(std::stol(status.substr(peak + 6)), 64 * 1024) << "KiB";
  EXPECT_THAT(Scrape(port), StartsWith("HTTP/1.1 200 OK"));
  Tell();
  EXPECT_EQ(run.Wait(), Code(0));
}

TEST_F(MetricsTest, ClientsThatDoNothingDelayNobody) {
  Job run({.arguments = Shell(Flags(), UntilTold())});
  ASSERT_TRUE(WaitForMetric("rankrun_attempt 0"));
  std::vector<Fd> idle;
  for (int i = 0; i < 64; ++i) {
    idle.push_back(Connect(port));
    ASSERT_TRUE(idle.back());
    if (i % 2 == 0) Send(idle.back(), "GET /metrics HTTP/1.1\r\n\r\n");  // and never reads
  }
  EXPECT_THAT(Scrape(port), StartsWith("HTTP/1.1 200 OK"));
  // The oldest were dropped: the connection ends without a response.
  EXPECT_THAT(Receive(idle[1]), Not(HasSubstr("rankrun_")));
  Tell();
  EXPECT_EQ(run.Wait(), Code(0));
}

TEST_F(MetricsTest, APortInUseIsRefusedByName) {
  Job run({.arguments = Shell(Flags(), UntilTold())});
  ASSERT_TRUE(WaitForMetric("rankrun_attempt 0"));
  Job second({.arguments = Shell(Flags(), "true")});
  EXPECT_EQ(second.Wait(), Code(2));
  EXPECT_EQ(second.Err(), "rankrun: --metrics 127.0.0.1:" + std::to_string(port) +
                              ": another process listens there; want a free port\n");
  Tell();
  EXPECT_EQ(run.Wait(), Code(0));
}

TEST_F(MetricsTest, AUnixSocketServesItsUserAndIsRemoved) {
  const std::string path = folder.Path("metrics.sock");
  Job run({.arguments = Shell({"--metrics=unix:" + path}, UntilTold())});
  ASSERT_TRUE(WaitFor([&] { return static_cast<bool>(Connect(path)); })) << run.Err();
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  Fd client = Connect(path);
  EXPECT_TRUE(Send(client, "GET /metrics HTTP/1.1\r\n\r\n"));
  EXPECT_THAT(Receive(client), HasSubstr("\nrankrun_attempt 0\n"));
  Job second({.arguments = Shell({"--metrics=unix:" + path}, "true")});
  EXPECT_EQ(second.Wait(), Code(2));
  EXPECT_THAT(second.Err(),
              HasSubstr("--metrics unix:" + path + ": another process listens there"));
  // The socket of an agent that was killed is replaced.
  kill(run.Agent(), SIGKILL);
  run.Wait();
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  Job third({.arguments = Shell({"--metrics=unix:" + path}, "true")});
  EXPECT_EQ(third.Wait(), Code(0)) << third.Err();
  EXPECT_NE(stat(path.c_str(), &status), 0);
}

TEST_F(MetricsTest, APathThatCannotBeUsedIsRefused) {
  folder.Script("file", "");
  for (const std::string& path :
       {folder.Path("file"), folder.Path("none/a"), folder.Path(std::string(200, 'a'))}) {
    Job run({.arguments = Shell({"--metrics=unix:" + path}, "true")});
    EXPECT_EQ(run.Wait(), Code(2)) << path;
    EXPECT_THAT(run.Err(), StartsWith("rankrun: --metrics unix:" + path + ": ")) << path;
  }
}

TEST_F(MetricsTest, APortThatTheKernelChoosesIsPrinted) {
  Job run({.arguments = Shell({"--metrics=0"}, UntilTold())});
  ASSERT_TRUE(run.WaitForErr("/metrics\n"));
  const std::string text = run.Err();
  constexpr std::string_view kBefore = "rankrun: metrics: http://127.0.0.1:";
  ASSERT_THAT(text, StartsWith(std::string(kBefore)));
  EXPECT_THAT(Scrape(std::stoi(text.substr(kBefore.size()))), HasSubstr("\nrankrun_info{"));
  Tell();
  EXPECT_EQ(run.Wait(), Code(0));
}

struct MetricsOfNodesTest : NodesTest {};

TEST_F(MetricsOfNodesTest, EachNodeServesItsOwn) {
  const int first = FreePort();
  const int second = FreePort();
  const std::string script = Stamped("until test -e go; do sleep 0.02; done");
  Job& host = StartHost({"-n2", "--node-rank=0", "--metrics=" + std::to_string(first)}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1", "--metrics=" + std::to_string(second)}, script);
  ASSERT_TRUE(WaitForUp(3, 0)) << Errors();
  EXPECT_THAT(Scrape(first), AllOf(HasSubstr("\nrankrun_world_size 3\n"),
                                   HasSubstr("\nrankrun_workers{state=\"running\"} 2\n"),
                                   HasSubstr("\nrankrun_store_keys 0\n")));
  EXPECT_THAT(Scrape(second), AllOf(HasSubstr("\nrankrun_world_size 3\n"),
                                    HasSubstr("\nrankrun_workers{state=\"running\"} 1\n"),
                                    Not(HasSubstr("rankrun_store_keys"))));
  Touch("go");
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
}

}  // namespace
}  // namespace rankrun::testing

// rankctl asks and orders running jobs of one node.

#include <gmock/gmock.h>
#include <pty.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/process/rankctl.h"

namespace rankrun::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Jobs and rankctl have a folder for sockets of their own.
struct RankctlJobTimingTest : ::testing::Test {
  RankctlJobTimingTest() { AdoptOrphans(); }

  // Starts `rankrun <flags> /bin/sh -c script` and waits for its socket.
  Job& Start(const std::vector<std::string>& flags, const std::string& script) {
    size_t sockets = Sockets().size();
    jobs.push_back(std::make_unique<Job>(
        Job::Options{.arguments = Shell(flags, script), .variables = variables}));
    EXPECT_TRUE(WaitFor([&] { return Sockets().size() > sockets; })) << jobs.back()->Err();
    return *jobs.back();
  }
  std::vector<std::string> Sockets() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder.Path("rankrun"), error)) {
      // A socket gets its name when it listens.
      if (!entry.path().string().ends_with('~')) names.push_back(entry.path());
    }
    return names;
  }

  // Runs rankctl to its end.
  struct Output {
    std::optional<ProcessExit> exit;
    std::string out;
    std::string err;
  };
  Output Run(std::vector<std::string> arguments) const {
    Job command({.arguments = std::move(arguments), .variables = variables, .program = kRankctl});
    auto exit = command.Wait();
    return {exit, command.Out(), command.Err()};
  }
  std::string Out(std::vector<std::string> arguments) const {
    Output output = Run(std::move(arguments));
    EXPECT_EQ(output.exit, Code(0)) << output.err;
    EXPECT_THAT(output.err, IsEmpty());
    return output.out;
  }
  // Returns whether `rankctl status` shows a text soon.
  bool StatusShows(const std::string& text) const {
    return WaitFor([&] { return Run({"status"}).out.find(text) != std::string::npos; });
  }

  ScratchFolder folder;
  std::map<std::string, std::string> variables{{"RANKRUN_SOCKET_DIR", folder.Path("rankrun")}};
  std::vector<std::unique_ptr<Job>> jobs;
};

const std::string kWaits = "echo rank $RANK is here; exec sleep 1000";

TEST_F(RankctlJobTimingTest, PsAndStatusShowTheJob) {
  Job& job = Start({"-n2", "--rdzv-id=wonderful"}, kWaits);
  EXPECT_THAT(Out({"ps"}), HasSubstr("wonderful  " + std::to_string(job.pid()) + "  1      2 "));
  EXPECT_TRUE(StatusShows("rank 1 is here"));
  std::string status = Out({"status"});
  EXPECT_THAT(status, StartsWith("job wonderful: running, 2 ranks, for "));
  std::vector<pid_t> workers = job.Workers(2);
  ASSERT_EQ(workers.size(), 2u);
  for (pid_t worker : workers) EXPECT_THAT(status, HasSubstr("  " + std::to_string(worker) + "  "));
  EXPECT_THAT(Out({"status", "--json"}), StartsWith(R"([{"job":"wonderful",)"));
}

TEST_F(RankctlJobTimingTest, TheFolderIsForItsUserAndTheSocketGoesWithTheJob) {
  Job& job = Start({}, kWaits);
  struct stat status {};
  ASSERT_EQ(stat(folder.Path("rankrun").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
  job.Signal(SIGTERM);
  EXPECT_EQ(job.Wait(), KilledBy(SIGTERM));
  EXPECT_THAT(Sockets(), IsEmpty());
}

TEST_F(RankctlJobTimingTest, WithoutAJobThatIsSaid) {
  EXPECT_EQ(Out({"ps"}), "no job of this user runs on this host\n");
  Output output = Run({"status"});
  EXPECT_EQ(output.exit, Code(1));
  EXPECT_THAT(output.err, HasSubstr("no job of this user runs on this host"));
  EXPECT_THAT(Run({"stop", "--job=4"}).err, HasSubstr("no job \"4\" runs on this host"));
}

TEST_F(RankctlJobTimingTest, OfSeveralJobsOneIsChosenByItsIdOrAPid) {
  Job& first = Start({"--rdzv-id=first"}, kWaits);
  Start({"-n3", "--rdzv-id=second"}, kWaits);
  Output output = Run({"status"});
  EXPECT_EQ(output.exit, Code(1));
  EXPECT_THAT(output.err, HasSubstr("several jobs run: first (pid "));
  EXPECT_THAT(output.err, HasSubstr("choose one with --job ID or PID"));
  EXPECT_THAT(Out({"status", "--job=second"}), HasSubstr("3 ranks"));
  EXPECT_THAT(Out({"status", "--job", std::to_string(first.pid())}), HasSubstr("1 rank,"));
  EXPECT_THAT(Out({"status", "--job", std::to_string(first.Agent())}), HasSubstr("job first"));
}

TEST_F(RankctlJobTimingTest, AnIdIsNotTakenForTheBeginningOfAnother) {
  Start({"--rdzv-id=exp1"}, kWaits);
  Job& other = Start({"--rdzv-id=exp10"}, kWaits);
  EXPECT_THAT(Out({"status", "--job=exp1"}), StartsWith("job exp1: "));
  EXPECT_THAT(Out({"status", "--job=exp10"}), StartsWith("job exp10: "));
  other.Signal(SIGTERM);
  EXPECT_EQ(other.Wait(), KilledBy(SIGTERM));
  Start({"--rdzv-id=exp12"}, kWaits);
  EXPECT_THAT(Out({"status", "--job=exp12"}), StartsWith("job exp12: "));
}

TEST_F(RankctlJobTimingTest, AnOrderIsNotForTheOnlyJobThatAnswers) {
  Job& silent = Start({"--rdzv-id=silent"}, kWaits);
  Job& other = Start({"--rdzv-id=other"}, kWaits);
  pid_t agent = silent.Agent();
  kill(agent, SIGSTOP);
  Output output = Run({"stop"});
  Output chosen = Run({"stop", "--job=other"});
  kill(agent, SIGCONT);
  EXPECT_EQ(output.exit, Code(1)) << output.out;
  EXPECT_THAT(output.err, HasSubstr("has not answered for 2.0 s"));
  EXPECT_THAT(output.err, HasSubstr("if you mean the job other, choose it with --job"));
  EXPECT_EQ(chosen.exit, Code(0)) << chosen.err;
  EXPECT_EQ(other.Wait(), KilledBy(SIGTERM));
}

TEST_F(RankctlJobTimingTest, TheFolderOfAnotherUserDoesNotFailPs) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give a folder away";
  ASSERT_EQ(mkdir(folder.Path("rankrun").c_str(), 0700), 0);
  ASSERT_EQ(chown(folder.Path("rankrun").c_str(), 65534, 65534), 0);
  Output output = Run({"ps"});
  EXPECT_EQ(output.exit, Code(0));
  EXPECT_THAT(output.err, HasSubstr("belongs to user 65534"));
}

TEST_F(RankctlJobTimingTest, PsRemovesASocketWhoseAgentHasDiedBeforeItNamedIt) {
  Job& job = Start({}, kWaits);
  std::string path = folder.Path("rankrun") + "/job.7~";
  Fd left(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(left.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  Out({"ps"});
  EXPECT_TRUE(std::filesystem::exists(path)) << "it may get its name yet";
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(1));
  Out({"ps"});
  EXPECT_FALSE(std::filesystem::exists(path));
  job.Signal(SIGTERM);
}

TEST_F(RankctlJobTimingTest, WhySaysWhatARankDoes) {
  Job& job = Start({"-n2"}, kWaits);
  std::vector<pid_t> workers = job.Workers(2);
  ASSERT_EQ(workers.size(), 2u);
  const std::string both =
      "nothing visible: no rank waits in a collective or store that rankrun sees\n"
      "ranks 0, 1: are sleeping";
  EXPECT_TRUE(WaitFor([&] { return Run({"why"}).out.starts_with(both); }));
  kill(workers[0], SIGSTOP);
  EXPECT_TRUE(StatusShows("stopped"));
  EXPECT_THAT(Out({"why"}), HasSubstr("is stopped (SIGSTOP)"));
  EXPECT_THAT(Run({"why", "7"}).err, HasSubstr("no rank 7 runs in this job"));
  EXPECT_EQ(Run({"why", "x"}).exit, Code(2));
}

TEST_F(RankctlJobTimingTest, WhyNamesTheFileForWhichARankWaits) {
  const std::string fifo = folder.Path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  Start({"-n2"}, "[ $RANK = 0 ] && exec sleep 1000; exec cat " + fifo);
  const std::string opening =
      "rank 1: is opening " + fifo + " (openat), a FIFO that no process has open for writing\n";
  EXPECT_TRUE(WaitFor([&] { return Run({"why"}).out.ends_with(opening); })) << Out({"why"});
  EXPECT_THAT(Out({"status"}), HasSubstr("openat of "));
}

// Starts ranks of a Python program that imports `fake` from a folder torch/distributed, whose
// functions the stacks show as those of PyTorch.
struct RankctlTorchTimingTest : RankctlJobTimingTest {
  void SetUp() override {
    if (access(kPython, X_OK) != 0) GTEST_SKIP() << "there is no " << kPython;
    const std::string module = folder.Path("torch/distributed");
    std::filesystem::create_directories(module);
    std::ofstream(module + "/rendezvous.py") << R"(
import socket, threading, time
def _create_c10d_store(hostname, port, rank):
    while True:
        try:
            return socket.create_connection((hostname, port), 1)
        except ConnectionRefusedError:
            time.sleep(20)
def barrier():
    threading.Event().wait()
)";
  }
  Job& StartPython(const std::vector<std::string>& flags, const std::string& program) {
    std::ofstream(folder.Path("train.py"))
        << "import os, socket, sys, time\nsys.path.insert(0, '" << folder.Path("torch/distributed")
        << "')\nimport rendezvous\nrank = int(os.environ['RANK'])\n"
        << program;
    return Start(flags, std::string("exec ") + kPython + " " + folder.Path("train.py"));
  }
  // Returns whether `rankctl why` begins with a text soon.
  bool WhyBegins(const std::string& text) const {
    return WaitFor([&] { return Run({"why"}).out.starts_with(text); });
  }
};

TEST_F(RankctlTorchTimingTest, WhyNamesAnAddressWhereNobodyListens) {
  StartPython({"-n2"}, "rendezvous._create_c10d_store('127.0.0.1', 1, rank)\n");
  EXPECT_TRUE(
      WhyBegins("ranks 0, 1 dial 127.0.0.1:1, where nobody listens: each rank must use "
                "the address that rank 0 serves; use init_method=\"env://\""))
      << Out({"why"});
}

TEST_F(RankctlTorchTimingTest, WhyNamesTheRankThatIsInNoCollective) {
  StartPython({"-n3"}, "time.sleep(1000) if rank == 1 else rendezvous.barrier()\n");
  EXPECT_TRUE(WhyBegins("ranks 0, 2 wait in barrier for rank 1, which is sleeping "))
      << Out({"why"});
}

TEST_F(RankctlTorchTimingTest, WhyNamesTheRankThatServesAPort) {
  StartPython({"-n2"}, "port = '" + folder.Path("port") + R"('
if rank == 0:
    server = socket.create_server(('127.0.0.1', 0))
    open(port + '~', 'w').write(str(server.getsockname()[1]))
    os.rename(port + '~', port)
    client = server.accept()[0]
    time.sleep(1000)
while not os.path.exists(port):
    time.sleep(0.01)
socket.create_connection(('127.0.0.1', int(open(port).read()))).recv(1)
)");
  EXPECT_TRUE(WhyBegins("rank 1 waits for an answer of rank 0, which serves 127.0.0.1:"))
      << Out({"why"});
}

TEST_F(RankctlTorchTimingTest, WhyNamesAnAddressThatDoesNotAnswer) {
  StartPython({"-n1"}, R"(
server = socket.create_server(('127.0.0.1', 0), backlog=0)
clients = [socket.socket() for _ in range(3)]
for client in clients:
    client.setblocking(False)
    client.connect_ex(server.getsockname())
time.sleep(1000)
)");
  EXPECT_TRUE(WaitFor([&] {
    const std::string why = Run({"why"}).out;
    return why.starts_with("rank 0 dials 127.0.0.1:") &&
           why.find("which does not answer") != std::string::npos;
  })) << Out({"why"});
}

TEST_F(RankctlTorchTimingTest, ANoticeNamesWhatQuietWorkersWaitFor) {
  Job& job = StartPython({"-n2", "--hang-notice=0.5"},
                         "rendezvous._create_c10d_store('127.0.0.1', 1, rank) if rank == 1 else "
                         "rendezvous.barrier()\n");
  for (const char* notice : {"rankrun: rank 1 dials 127.0.0.1:1, where nobody listens",
                             "rankrun: rank 0 waits in barrier for rank 1, which is dialling "
                             "127.0.0.1:1; for "}) {
    const auto is_shown = [&] { return job.Err().find(notice) != std::string::npos; };
    EXPECT_TRUE(WaitFor(is_shown)) << job.Err();
  }
}

TEST_F(RankctlJobTimingTest, WhyNamesTheRankForWhichOthersWait) {
  Start({"-n3"}, "exec " + test::Program("absent") + " 7");
  EXPECT_TRUE(WaitFor([&] {
    return Run({"why"}).out.starts_with(
        "ranks 0, 1 wait in AllReduce #8 (16 x float32, sum) of "
        "world for rank 2, which is waiting (pause)");
  })) << Out({"why"});
  EXPECT_THAT(Out({"status"}), HasSubstr("in AllReduce #8 (16 x float32, sum) of world, "));
}

TEST_F(RankctlJobTimingTest, WhyNamesTheKeyOfTheStoreForWhichARankWaits) {
  Start({"-n3"},
        "[ $RANK = 0 ] && exec sleep 1000; exec " + kRankctl + " store wait --timeout=1000 never");
  EXPECT_TRUE(StatusShows("waiting for key never of the store")) << Out({"status"});
  EXPECT_TRUE(WaitFor([&] {
    std::string why = Run({"why"}).out;
    return why.starts_with("ranks 1, 2 wait ") &&
           why.substr(0, why.find('\n')).find("key never of the store") != std::string::npos;
  })) << Out({"why"});
}

TEST_F(RankctlJobTimingTest, WhyNamesARankThatIsHeldAtABreakpoint) {
  jobs.push_back(std::make_unique<Job>(
      Job::Options{.arguments = {"-n2", "--no-python", test::Program("held"), "1", "0", "1"},
                   .variables = variables}));
  EXPECT_TRUE(WaitFor([&] {
    return Run({"why"}).out.find(", held at a breakpoint\n") != std::string::npos;
  })) << Out({"why"})
      << jobs.back()->Err();
}

TEST_F(RankctlJobTimingTest, LogsAreThoseOfTheRank) {
  Start({"-n2"}, "echo out $RANK; echo err $RANK >&2; exec sleep 1000");
  EXPECT_TRUE(WaitFor([&] { return Run({"logs", "1"}).out == "out 1\n"; }));
  EXPECT_TRUE(WaitFor([&] { return Run({"logs", "1"}).err == "err 1\n"; }));
  EXPECT_THAT(Run({"logs", "2"}).err, HasSubstr("no rank 2 runs in this job"));
  Job full({.arguments = {"-c", kRankctl + " logs --follow 1 >/dev/full"},
            .variables = variables,
            .program = "/bin/sh"});
  EXPECT_EQ(full.Wait(), Code(1)) << "nobody reads it any more";
}

TEST_F(RankctlJobTimingTest, LogsThatAreNoLongerInMemoryComeFromTheFile) {
  const std::string script =
      "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo end; exec sleep 1000";
  Start({"--redirects=1", "--log-dir=" + folder.Path("logs")}, script);
  std::string out;
  EXPECT_TRUE(WaitFor([&] {
    out = Run({"logs", "0"}).out;
    return out.ends_with("line 19999\nend\n");
  }));
  EXPECT_THAT(out, StartsWith("line 0\nline 1\n"));
  EXPECT_EQ(std::ranges::count(out, '\n'), 20'001);
}

TEST_F(RankctlJobTimingTest, LogsOfAnAttemptThatHasFailedStayUntilTheNextOneEnds) {
  Start({"--max-restarts=2", "--restart-pause=600"},
        "echo words of $TORCHELASTIC_RESTART_COUNT; sleep 0.1; exit 3");
  EXPECT_TRUE(StatusShows(": pausing, "));
  EXPECT_EQ(Run({"logs", "0"}).out, "words of 1\n");
}

TEST_F(RankctlJobTimingTest, LogsFollowTheLastLinesOfAnAttempt) {
  const std::string gate = folder.Path("gate");
  Start({"--max-restarts=1"},
        "echo attempt $TORCHELASTIC_RESTART_COUNT; "
        "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exec sleep 1000; "
        "until [ -e " +
            gate + " ]; do sleep 0.01; done; echo last; exit 3");
  Job follower({.arguments = {"logs", "-f", "0"}, .variables = variables, .program = kRankctl});
  ASSERT_TRUE(follower.WaitForOut("attempt 0\n"));
  // The follower does not look while the attempt ends.
  follower.Signal(SIGSTOP);
  std::ofstream(gate) << "open";
  ASSERT_TRUE(WaitFor([&] { return Run({"logs", "0"}).out == "attempt 1\n"; }));
  follower.Signal(SIGCONT);
  ASSERT_TRUE(follower.WaitForOut("attempt 1\n"));
  EXPECT_EQ(follower.Out(), "attempt 0\nlast\nattempt 1\n");
  Out({"stop"});
  EXPECT_EQ(follower.Wait(), Code(0));
}

TEST_F(RankctlJobTimingTest, AFollowerGoesOnWithTheNextAgent) {
  Job& job =
      Start({"--max-restarts=1"}, "echo attempt $TORCHELASTIC_RESTART_COUNT; exec sleep 1000");
  Job logs({.arguments = {"logs", "-f", "0"}, .variables = variables, .program = kRankctl});
  Job events({.arguments = {"events", "-f"}, .variables = variables, .program = kRankctl});
  ASSERT_TRUE(logs.WaitForOut("attempt 0\n"));
  ASSERT_TRUE(events.WaitForOut("worker_started"));
  kill(job.Agent(), SIGKILL);
  EXPECT_TRUE(logs.WaitForOut("attempt 1\n")) << logs.Err();
  EXPECT_TRUE(events.WaitForOut("agent_restarted")) << events.Err();
  Out({"stop"});
  EXPECT_EQ(logs.Wait(), Code(0));
  EXPECT_EQ(events.Wait(), Code(0));
}

TEST_F(RankctlJobTimingTest, LogsFollowARankOverARestartToItsEnd) {
  Start({}, "echo attempt $TORCHELASTIC_RESTART_COUNT; exec sleep 1000");
  Job follower({.arguments = {"logs", "-f", "0"}, .variables = variables, .program = kRankctl});
  ASSERT_TRUE(follower.WaitForOut("attempt 0\n"));
  Out({"restart"});
  ASSERT_TRUE(follower.WaitForOut("attempt 0\nattempt 1\n"));
  EXPECT_THAT(follower.Err(), HasSubstr("attempt 1 begins"));
  Out({"stop"});
  EXPECT_EQ(follower.Wait(), Code(0));
}

TEST_F(RankctlJobTimingTest, EventsAreKeptWithoutAFile) {
  Start({"-n2"}, kWaits);
  std::string events;
  EXPECT_TRUE(WaitFor([&] {
    events = Run({"events"}).out;
    return events.find(R"("local_rank":1)") != std::string::npos;
  }));
  EXPECT_THAT(events, StartsWith(R"({"time":)"));
  EXPECT_THAT(events, HasSubstr(R"("event":"job_started")"));
  Job follower({.arguments = {"events", "-f"}, .variables = variables, .program = kRankctl});
  ASSERT_TRUE(follower.WaitForOut("job_started"));
  Out({"restart"});
  EXPECT_TRUE(follower.WaitForOut(R"("is_free":true,"why":"asked by rankctl")")) << follower.Out();
  Out({"stop"});
  EXPECT_EQ(follower.Wait(), Code(0));
}

TEST_F(RankctlJobTimingTest, ARestartUsesNoBudget) {
  Job& job = Start({"-n2"}, "echo attempt $TORCHELASTIC_RESTART_COUNT; exec sleep 1000");
  EXPECT_THAT(Out({"restart"}), StartsWith("all workers start again"));
  EXPECT_TRUE(job.WaitForOut("attempt 1"));
  EXPECT_THAT(Out({"restart"}), StartsWith("all workers start again"));
  EXPECT_TRUE(job.WaitForOut("attempt 2"));
  EXPECT_THAT(job.Err(), HasSubstr("rankctl restart: all workers start again"));
  EXPECT_THAT(job.Err(), Not(HasSubstr("cause:"))) << "nothing has failed";
  EXPECT_TRUE(StatusShows("attempt 2"));
}

TEST_F(RankctlJobTimingTest, StopEndsTheJobGently) {
  Job& job =
      Start({"-n2"}, "trap 'echo saved; exit 0' TERM; echo up; while :; do sleep 0.05; done");
  ASSERT_TRUE(WaitFor([&] { return job.Out().find("up") != job.Out().rfind("up"); }));
  EXPECT_THAT(Out({"stop"}), StartsWith("the workers have up to 25.0 s to end"));
  EXPECT_EQ(job.Wait(), KilledBy(SIGTERM));
  EXPECT_THAT(job.Out(), HasSubstr("saved"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(5'000)));
}

TEST_F(RankctlJobTimingTest, AJobOfOneNodeCannotBeDrained) {
  Start({}, kWaits);
  EXPECT_THAT(Run({"drain", "0"}).err, HasSubstr("this job has one node; rankctl stop ends it"));
}

TEST_F(RankctlJobTimingTest, TheSocketOfADeadAgentIsRemovedAndItsSuccessorHasAnother) {
  Job& job = Start({"--max-restarts=1"}, kWaits);
  std::vector<std::string> before = Sockets();
  kill(job.Agent(), SIGKILL);
  ASSERT_TRUE(WaitFor([&] { return Sockets().size() == 2; }));
  EXPECT_THAT(Out({"ps"}), HasSubstr("running"));
  std::vector<std::string> after = Sockets();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_NE(after, before);
}

TEST_F(RankctlJobTimingTest, TheSocketsOfAKilledJobAreRemoved) {
  Job& job = Start({}, kWaits);
  pid_t agent = job.Agent();
  kill(job.pid(), SIGKILL);
  kill(agent, SIGKILL);
  EXPECT_TRUE(NothingIsLeft(milliseconds(20'000)));
  EXPECT_EQ(Sockets().size(), 1u);
  EXPECT_EQ(Out({"ps"}), "no job of this user runs on this host\n");
  EXPECT_THAT(Sockets(), IsEmpty());
}

TEST_F(RankctlJobTimingTest, AnAgentThatDoesNotAnswerIsNamedWithWhatItDoes) {
  Job& job = Start({}, kWaits);
  pid_t agent = job.Agent();
  kill(agent, SIGSTOP);
  Output output = Run({"status"});
  kill(agent, SIGCONT);
  EXPECT_EQ(output.exit, Code(1));
  EXPECT_THAT(output.err, HasSubstr("the agent (pid " + std::to_string(agent) +
                                    ") has not answered for 2.0 s: pid " + std::to_string(agent) +
                                    " (rankrun-agent), state T"));
}

TEST_F(RankctlJobTimingTest, AClientThatNeverReadsDisturbsNobody) {
  Job& job = Start({"-n4"}, kWaits);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, Sockets().at(0).c_str());
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  ASSERT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::string line = "{\"request\":\"status\"}\n";
  for (int i = 0; i < 2'000; ++i) send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL);
  EXPECT_THAT(Out({"status"}), HasSubstr("4 ranks"));
  Out({"stop"});
  EXPECT_EQ(job.Wait(), KilledBy(SIGTERM));
}

TEST_F(RankctlJobTimingTest, AStatusOf64RanksHasThemAll) {
  Start({"-n64"}, kWaits);
  EXPECT_TRUE(WaitFor([&] {
    std::string text = Run({"status"}).out;
    return std::ranges::count(text, '\n') == 66 &&
           Run({"why"}).out.find("ranks 0-63: are sleeping") != std::string::npos;
  }));
}

TEST_F(RankctlJobTimingTest, OnlyTheUserOfAJobAndRootMayAsk) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  constexpr uid_t kNobody = 65534;
  Job& job = Start({}, kWaits);
  auto become_nobody = [] {
    if (setgid(kNobody) != 0 || setuid(kNobody) != 0) _exit(99);
  };
  Job asker({.arguments = {"status", "--job", std::to_string(job.pid())},
             .variables = variables,
             .program = kRankctl,
             .in_child = become_nobody});
  EXPECT_EQ(asker.Wait(), Code(1));
  EXPECT_THAT(asker.Err(), HasSubstr("belongs to user 0; only that user and root can inspect"));
}

// A terminal shows what others have written; its answers would be typed into the shell.
TEST_F(RankctlJobTimingTest, ATerminalIsNotControlled) {
  int master = Fd::kNone;
  int slave = Fd::kNone;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  const Fd screen(master);
  const Fd terminal(slave);
  auto run = [&](std::vector<std::string> arguments) {
    Job command({.arguments = std::move(arguments),
                 .variables = variables,
                 .program = kRankctl,
                 .in_child = [slave] { dup2(slave, STDOUT_FILENO); }});
    EXPECT_TRUE(command.Wait()) << command.Err();
    std::string shown(65536, '\0');
    shown.resize(static_cast<size_t>(read(screen.get(), shown.data(), shown.size())));
    return shown;
  };
  Start({"--rdzv-id=plain"}, "printf 'a\\033]52;c;evil\\007b\\n'; " + std::string(kWaits));
  ASSERT_TRUE(WaitFor([&] { return Run({"logs", "0"}).out.find("evil") != std::string::npos; }));
  EXPECT_THAT(run({"logs", "0"}), HasSubstr("a\\x1b]52;c;evil\\x07b"));
  EXPECT_THAT(Run({"logs", "0"}).out, HasSubstr("a\x1b]52;c;evil\x07"
                                                "b\n"));
  const std::string reports = folder.Path("reports");
  Job failing({.arguments = Shell({"--report-dir=" + reports, "--rdzv-id=\x1b[31mred"}, "exit 3")});
  EXPECT_EQ(failing.Wait(), Code(3));
  EXPECT_THAT(run({"report", "--report-dir=" + reports, "--html=" + folder.Path("page")}),
              HasSubstr("the report on job \\x1b[31mred"));
}

}  // namespace
}  // namespace rankrun::testing

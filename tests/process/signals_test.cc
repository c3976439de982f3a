// Which processes of a worker get a signal, and how long they have after it.

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A program that saves with the help of a child, as PyTorch's does with its data loaders. The
// child dies of any signal.
constexpr const char* kTrainer = R"(
import os, signal, sys, time
ask, answer = os.pipe(), os.pipe()
if os.fork() == 0:
    os.read(ask[0], 1)
    os.write(answer[1], b"x")
    os._exit(0)
os.close(answer[1])
def save(number, frame):
    os.write(ask[1], b"x")
    print("saved" if os.read(answer[0], 1) else "no child", flush=True)
    sys.exit(0)
for number in [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP]:
    signal.signal(number, save)
os.write(1, b"up\n")
while True:
    time.sleep(0.01)  # a signal just before pause() would be lost
)";

// Saves for longer than a sweep lets leftovers live; a second signal would end it.
constexpr const char* kSaver = R"(
import os, signal, sys, time
def save(number, frame):
    signal.signal(number, signal.SIG_DFL)
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        time.sleep(0.01)
    print("saved", flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, save)
os.write(1, b"up\n")
while True:
    time.sleep(0.01)  # a signal just before pause() would be lost
)";

// Its tracer prints the signals that the program gets.
constexpr const char* kTraced = R"(
import ctypes, os, signal, time
libc = ctypes.CDLL(None)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
PR_SET_PTRACER, PTRACE_SEIZE, PTRACE_CONT = 0x59616d61, 0x4206, 7
libc.prctl(PR_SET_PTRACER, 2**64 - 1, 0, 0, 0)
got = []
signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
traced = os.getpid()
attached = os.pipe()
if os.fork() == 0:
    libc.ptrace(PTRACE_SEIZE, traced, None, None)
    os.write(attached[1], b"x")
    while True:
        status = os.waitpid(traced, 0)[1]
        if not os.WIFSTOPPED(status):
            os._exit(0)
        number = os.WSTOPSIG(status)
        print("got", signal.Signals(number).name, flush=True)
        libc.ptrace(PTRACE_CONT, traced, None, number)
os.read(attached[0], 1)
os.write(1, b"up\n")
while not got:
    time.sleep(0.01)
time.sleep(0.2)
)";

struct SignalsTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }
  std::string File(const std::string& name, const std::string& text) const {
    std::ofstream(folder.Path(name)) << text;
    return folder.Path(name);
  }
  std::vector<std::string> Python(const char* program) const {
    return {"--no-python", kPython, File("program.py", program)};
  }
  ScratchFolder folder;
};

TEST_F(SignalsTest, AWorkerThatHandlesAStopGetsItAlone) {
  for (int number : {SIGTERM, SIGHUP}) {
    Job run({.arguments = Python(kTrainer)});
    ASSERT_TRUE(run.WaitForOut("up\n"));
    run.Signal(number);
    EXPECT_EQ(run.Wait(), KilledBy(number));
    EXPECT_EQ(run.Out(), "up\nsaved\n");
    EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  }
}

TEST_F(SignalsTest, AWorkerThatHandlesANoticeGetsItAlone) {
  for (int number : {SIGUSR1, SIGUSR2}) {
    Job run({.arguments = Python(kTrainer)});
    ASSERT_TRUE(run.WaitForOut("up\n"));
    run.Signal(number);
    EXPECT_EQ(run.Wait(), Code(0));
    EXPECT_EQ(run.Out(), "up\nsaved\n");
  }
}

TEST_F(SignalsTest, AWorkerThatAFailureStopsGetsTheSignalAlone) {
  std::string trainer = File("trainer.py", kTrainer);
  Job run(
      {.arguments = Shell({"-n", "2"}, "if [ $RANK = 0 ]; then exec " + std::string(kPython) + " " +
                                           trainer + "; fi; until [ -e " + folder.Path("go") +
                                           " ]; do sleep 0.01; done; exit 3")});
  ASSERT_TRUE(run.WaitForOut("up\n"));
  std::ofstream(folder.Path("go")) << "\n";
  EXPECT_EQ(run.Wait(), Code(3));
  EXPECT_EQ(run.Out(), "up\nsaved\n");
}

// A SIGCONT would cancel the stop that a tracer waits for.
TEST_F(SignalsTest, AWorkerWithATracerGetsTheStopOnly) {
  Job run({.arguments = Python(kTraced)});
  ASSERT_TRUE(run.WaitForOut("up\n"));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
  EXPECT_EQ(run.Out(), "up\ngot SIGTERM\n");
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(SignalsTest, TheCommandOfAShellGetsAStopWhateverTheShellTraps) {
  std::string saver = std::string(kPython) + " " + File("saver.py", kSaver);
  for (const char* trap : {"", "trap 'echo cleaned' EXIT; ", "trap 'echo cleaned' TERM; "}) {
    Job run(
        {.arguments = {"--no-python", "/bin/bash", "-c", std::string(trap) + saver + "; exit $?"}});
    ASSERT_TRUE(run.WaitForOut("up\n"));
    run.Signal(SIGTERM);
    EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
    EXPECT_THAT(run.Out(), HasSubstr("saved")) << trap;
    EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
  }
}

TEST_F(SignalsTest, AfterTheGraceNothingOfAShellIsLeft) {
  Job run({.arguments =
               Shell({"--shutdown-timeout", "1.2"},
                     "sh -c \"trap '' TERM; echo up; while :; do sleep 0.01; done\"; exit 0")});
  ASSERT_TRUE(run.WaitForOut("up\n"));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(SignalsTest, ASecondSignalEndsTheGraceOfAShellsCommand) {
  Job run({.arguments =
               Shell({"--shutdown-timeout", "1000"},
                     "sh -c \"trap '' TERM; echo up; while :; do sleep 0.01; done\"; exit 0")});
  ASSERT_TRUE(run.WaitForOut("up\n"));
  pid_t worker = run.Workers(1).at(0);
  run.Signal(SIGTERM);
  ASSERT_TRUE(WaitFor([&] { return kill(worker, 0) != 0; })) << "the shell ends at once";
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(SignalsTest, ANoticeEndsNoProcessThatDoesNotHandleIt) {
  Job run({.arguments = Shell({"-n", "2"}, "sleep 1000 & echo up; wait")});
  ASSERT_TRUE(run.WaitForOut("up\nup\n"));
  run.Signal(SIGUSR2);
  EXPECT_TRUE(run.WaitForErr(
      "rankrun: SIGUSR2 was not passed on to ranks 0, 1: no process there handles it\n"));
  run.Signal(SIGTERM);
  EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
}

TEST_F(SignalsTest, ANoticeReachesTheCommandOfAShell) {
  std::string trainer = File("trainer.py", kTrainer);
  Job run({.arguments = Shell({}, std::string(kPython) + " " + trainer + "; echo after")});
  ASSERT_TRUE(run.WaitForOut("up\n"));
  run.Signal(SIGUSR1);
  EXPECT_EQ(run.Wait(), Code(0));
  EXPECT_EQ(run.Out(), "up\nsaved\nafter\n");
  EXPECT_THAT(run.Err(), Not(HasSubstr("not passed on")));
}

// As a shell without job control starts `rankrun ... &`.
void IgnoreInterrupts() {
  signal(SIGINT, SIG_IGN);
  signal(SIGQUIT, SIG_IGN);
}

TEST_F(SignalsTest, AListedInterruptCountsAlthoughTheShellIgnoresIt) {
  for (int number : {SIGINT, SIGQUIT}) {
    Job run(
        {.arguments = Shell({"--signals-to-handle", "INT,QUIT,TERM"}, "echo up; exec sleep 1000"),
         .in_child = IgnoreInterrupts});
    ASSERT_TRUE(run.WaitForOut("up\n"));
    run.Signal(number);
    EXPECT_EQ(run.Wait(), KilledBy(number));
  }
}

TEST_F(SignalsTest, AnInterruptCountsByTheNameTorchrunAlthoughTheShellIgnoresIt) {
  ASSERT_EQ(symlink(test::Program("rankrun").c_str(), folder.Path("torchrun").c_str()), 0);
  Job run({.arguments = Shell({}, "echo up; exec sleep 1000"),
           .program = folder.Path("torchrun"),
           .in_child = IgnoreInterrupts});
  ASSERT_TRUE(run.WaitForOut("up\n"));
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(), KilledBy(SIGINT));
}

TEST_F(SignalsTest, OtherwiseAnIgnoredInterruptStaysIgnored) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, {"--signals-to-handle", "TERM"}}) {
    Job run({.arguments = Shell(flags, "echo up; exec sleep 1000"), .in_child = IgnoreInterrupts});
    ASSERT_TRUE(run.WaitForOut("up\n"));
    run.Signal(SIGINT);
    run.Signal(SIGTERM);
    EXPECT_EQ(run.Wait(), KilledBy(SIGTERM));
  }
}

}  // namespace
}  // namespace rankrun::testing

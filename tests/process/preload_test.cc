// Forked workers of a preloader equal executed ones.

#include <gmock/gmock.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

using Words = std::vector<std::string>;

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct PreloadTest : ::testing::Test {
  void SetUp() override { AdoptOrphans(); }

  // Writes a file of Python, and returns its path.
  std::string File(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.Path(name)) << text;
    return folder_.Path(name);
  }

  // Runs a command of Python whose modules are in the folder.
  Job::Options Options(const Words& flags, const Words& python) const {
    return {.arguments = flags + Words{kPython} + python,
            .variables = {{"PYTHONPATH", folder_.path()},
                          {"PYTHONDONTWRITEBYTECODE", "1"},
                          {"OMP_NUM_THREADS", "1"}}};
  }

  // Expects the same end and the same output of an executed and a forked worker.
  void ExpectSame(const Words& flags, const Words& python, const std::string& input = "") const {
    auto options = Options(flags, python);
    options.stdin_text = input;
    Job executed(options);
    options.arguments = Words{"--preload", "json,multiprocessing"} + options.arguments;
    Job forked(options);
    auto end = forked.Wait();
    ASSERT_TRUE(end.has_value());
    EXPECT_EQ(end, executed.Wait());
    EXPECT_EQ(forked.Out(), executed.Out());
    EXPECT_EQ(Said(forked), Said(executed));
  }

  // Returns the error output of the worker, without rankrun's report.
  static std::string Said(const Job& job) {
    const std::string text = job.Err();
    return text.substr(0, text.find("rankrun: "));
  }

  ScratchFolder folder_;
};

TEST_F(PreloadTest, AForkHasAllThatAnExecutedWorkerHas) {
  const std::string probe = test::InSource("tests/process/workers/probe.py");
  const std::string code = ReadText(probe);
  File("package_probe.py", code);
  File("__main__.py", code);
  const Words input = {"--stdin", "0"};
  ExpectSame(input, {"-u", probe, "a", "", "b c"}, "one\ntwo");
  ExpectSame({}, {probe});
  ExpectSame(input, {"-u", "-m", "package_probe", "a"}, "text");
  ExpectSame({}, {"-u", folder_.path(), "a"});
  ExpectSame({}, {"-uB", "-X", "utf8", "-c", code, "a"});
  ExpectSame({"--bind", "core"}, {"-u", probe, "rank=${rank}", "\xFF\xFE"});
  ExpectSame({"--env", "A=\xE4\xFF", "--env", "OMP_NUM_THREADS=3", "--env", "E="}, {"-u", probe});
}

TEST_F(PreloadTest, AProgramEndsTheSameWay) {
  const std::string raises = File("raises.py", "def f():\n  raise ValueError('no')\nf()\n");
  for (const Words& python :
       {Words{"-c", "import sys; sys.exit(3)"}, Words{"-c", "import sys; sys.exit('why')"},
        Words{"-c", "raise SystemExit"}, Words{"-u", raises}, Words{"-m", "raises"},
        Words{File("wrong.py", "def (:\n")}, Words{"-m", "nowhere"},
        Words{folder_.Path("absent.py")},
        Words{"-c", "import atexit; atexit.register(print, 'end'); print('begin')"},
        Words{"-c", "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('no')"},
        Words{"-c", "import os; os.abort()"}, Words{"-c", "import os; os._exit(4)"},
        Words{"-c", "import sys\ndef hook(*a): print('hook', a[1])\nsys.excepthook = hook\n1/0"},
        Words{"-c", "import sys\ndef hook(*a): 1/0\nsys.excepthook = hook\nint('x')"},
        Words{"-c", "import threading as t; t.Thread(target=print, args=('late',)).start()"},
        Words{"-c", "import ctypes; ctypes.string_at(0)"}}) {
    SCOPED_TRACE(python.back());
    ExpectSame({}, python);
  }
}

TEST_F(PreloadTest, ProcessesOfMultiprocessingFindTheProgram) {
  const std::string program =
      File("pools.py",
           "import multiprocessing as m\n"
           "def square(x): return x * x\n"
           "if __name__ == '__main__':\n"
           "  for method in ('spawn', 'forkserver', 'fork'):\n"
           "    context = m.get_context(method)\n"
           "    with context.Pool(2) as pool: print(method, pool.map(square, range(4)))\n"
           "    print(context.Manager().list([1]))\n");
  ExpectSame({}, {"-u", program});
}

TEST_F(PreloadTest, EachModuleIsImportedOncePerNode) {
  File("slow.py", "print('imported')\n");
  const std::string program = File(
      "train.py",
      "import os, sys, slow\n"
      "print('rank', os.environ['RANK'], os.environ['TORCHELASTIC_RESTART_COUNT'])\n"
      "sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0' and os.environ['RANK'] == '1')\n");
  Job job(Options({"-n", "3", "--max-restarts", "1", "--preload", "slow"}, {"-u", program}));
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_EQ(Count(job.Out() + job.Err(), "imported"), 1) << job.Out();
  EXPECT_EQ(Count(job.Out(), " 1\n"), 3) << job.Out();
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(PreloadTest, AChangedModuleIsImportedAgain) {
  const std::string module = File("module.py", "VALUE = 1\n");
  const std::string program = File("train.py",
                                   "import os, sys, module\nprint('value', module.VALUE)\n"
                                   "if module.VALUE == 1:\n"
                                   "  open('" +
                                       module +
                                       "', 'w').write('VALUE = 22\\n')\n"
                                       "  sys.exit(1)\n");
  Job job(Options({"--max-restarts", "1", "--preload", "module"}, {"-u", program}));
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_EQ(job.Out(), "value 1\nvalue 22\n");
}

TEST_F(PreloadTest, ADeadPreloaderIsReplaced) {
  File("slow.py", "print('imported')\n");
  const std::string program = File("train.py",
                                   "import os, sys, time\n"
                                   "print('up', flush=True)\n"
                                   "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
                                   "  while not os.path.exists('" +
                                       folder_.Path("go") +
                                       "'): time.sleep(0.01)\n"
                                       "  sys.exit(1)\n");
  Job job(Options({"--max-restarts", "1", "--preload", "slow"}, {"-u", program}));
  ASSERT_TRUE(job.WaitForOut("up"));
  const pid_t preloader = PreloaderOf(job.Agent());
  ASSERT_NE(preloader, 0);
  kill(preloader, SIGKILL);
  ASSERT_TRUE(WaitFor([&] { return kill(preloader, 0) != 0; }));
  File("go", "");
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_EQ(Count(job.Out(), "up\n"), 2);
  EXPECT_EQ(Count(job.Err(), "imported"), 2) << job.Err();
}

// Runs a program with a module, and expects that it is executed with this reason.
void ExpectExecuted(const Job::Options& options, const std::string& why) {
  Job job(options);
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_THAT(
      job.Err(),
      ContainsRegex("rankrun: .*--preload: the workers are executed as always: " + why + "\n"));
  EXPECT_EQ(Count(job.Err(), "--preload"), 1) << job.Err();
  EXPECT_EQ(Count(job.Out(), "ran\n"), 2);
}

TEST_F(PreloadTest, WhatIsNotSafeToForkIsNamed) {
  const Words program = {"-u", "-c", "print('ran')"};
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"import threading, time\nthreading.Thread(target=time.sleep, args=(99,), "
       "daemon=True).start()",
       "unsafe runs 1 thread \\(.*\\)"},
      {"import socket\nkept = socket.socket()", "unsafe has opened socket:\\[[0-9]+\\]"},
      {"import os\nkept = os.pipe()", "unsafe has opened pipe:\\[[0-9]+\\]"},
      {"import os\nkept = os.open('/dev/ptmx', os.O_RDWR)", "unsafe has opened /dev/p.*"},
      {"import subprocess\nkept = subprocess.Popen(['sleep', '99'])",
       "unsafe has started a process"},
      {"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
       "Python has ended during the import"},
  };
  for (const auto& [code, why] : cases) {
    SCOPED_TRACE(code);
    File("unsafe.py", code);
    ExpectExecuted(Options({"-n", "2", "--preload", "json,unsafe"}, program), why);
    EXPECT_TRUE(NothingIsLeft(milliseconds(5'000)));
  }
}

TEST_F(PreloadTest, ThreadsThatEndBeforeAForkAreNoDanger) {
  File("careful.py",
       "import os, threading\n"
       "stop = threading.Event()\n"
       "thread = threading.Thread(target=stop.wait)\n"
       "thread.start()\n"
       "def end():\n"
       "  stop.set()\n"
       "  thread.join()\n"
       "os.register_at_fork(before=end)\n");
  Job job(Options({"--preload", "careful"},
                  {"-u", "-c", "import sys; print('careful' in sys.modules)"}));
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_EQ(job.Out(), "True\n");
  EXPECT_EQ(job.Err(), "");
}

TEST_F(PreloadTest, OtherFilesMayStayOpen) {
  const std::string data = File("data", "text");
  File("reader.py", "kept = open('" + data + "'); null = open('/dev/null')\n");
  Job job(
      Options({"--preload", "reader"}, {"-u", "-c", "import reader; print(reader.kept.read())"}));
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_EQ(job.Out(), "text\n");
}

TEST_F(PreloadTest, AModuleThatFailsIsOneLine) {
  File("broken.py", "raise RuntimeError('no licence')\n");
  File("leaver.py", "import sys; sys.exit('gone')\n");
  Job job(Options({"-n", "2", "--preload", "broken,leaver,json"},
                  {"-u", "-c", "import sys; print('json' in sys.modules)"}));
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_THAT(job.Err(), HasSubstr("--preload: cannot import broken: RuntimeError: no licence\n"));
  EXPECT_THAT(job.Err(), HasSubstr("--preload: cannot import leaver: SystemExit: gone\n"));
  EXPECT_EQ(Count(job.Err(), "\n"), 2) << job.Err();
  EXPECT_EQ(job.Out(), "True\nTrue\n");
}

TEST_F(PreloadTest, AStopDoesNotWaitForAnImport) {
  const std::string begun = folder_.Path("begun");
  File("endless.py", "import time\nopen('" + begun + "', 'w')\ntime.sleep(999)\n");
  Job job(Options({"-n", "2", "--preload", "endless"}, {"-u", "-c", "print('ran')"}));
  ASSERT_TRUE(WaitFor([&] { return access(begun.c_str(), F_OK) == 0; }));
  job.Signal(SIGTERM);
  EXPECT_EQ(job.Wait(), KilledBy(SIGTERM)) << job.Err();
  EXPECT_EQ(job.Out(), "");
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_F(PreloadTest, ForkedWorkersDieWithTheirAgent) {
  Job job(Options({"-n", "2", "--preload", "json"},
                  {"-u", "-c", "print('up'); import time; time.sleep(999)"}));
  ASSERT_TRUE(WaitFor([&] { return Count(job.Out(), "up") == 2; }));
  kill(job.Agent(), SIGKILL);
  job.Signal(SIGKILL);
  ASSERT_TRUE(job.Wait());
  EXPECT_TRUE(NothingIsLeft(milliseconds(5'000)));
}

TEST_F(PreloadTest, RandomNumbersDiffer) {
  Job job(Options({"-n", "4", "--preload", "random,uuid,tempfile,secrets"},
                  {"-u", "-c", "import random, uuid; print(random.random(), uuid.uuid4())"}));
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  std::istringstream lines(job.Out());
  std::set<std::string> seen;
  for (std::string number, id; lines >> number >> id;) seen.insert({number, id});
  EXPECT_EQ(seen.size(), 8u) << job.Out();
}

}  // namespace
}  // namespace rankrun::testing

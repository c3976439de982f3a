// The CPUs and GPUs of workers, and errors of worker starts.

#include <gmock/gmock.h>
#include <sched.h>
#include <stdlib.h>

#include <fstream>

#include "base/process/cpus.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr ProcessExit kSuccess{.signaled = false, .value = 0};

TEST(DevicesTest, TheNumberOfThreadsIsSaidOncePerJob) {
  Job run({.arguments = Shell({"-n", "64", "--max-restarts", "1"},
                              "echo threads $OMP_NUM_THREADS; exit $((1 - "
                              "$TORCHELASTIC_RESTART_COUNT))"),
           .in_child = [] { unsetenv("OMP_NUM_THREADS"); }});
  EXPECT_EQ(run.Wait(), kSuccess);
  std::string err = run.Err();
  std::string notice = err.substr(0, err.find('\n'));
  EXPECT_THAT(notice, MatchesRegex("rankrun: OMP_NUM_THREADS is [0-9]+: [0-9]+ cores?( by the "
                                   "container.s limit)? / 64 workers; "
                                   "set it to choose another"));
  EXPECT_THAT(err.substr(notice.size()), Not(HasSubstr("OMP_NUM_THREADS")));
  std::string number = notice.substr(notice.find(" is ") + 4);
  EXPECT_THAT(run.Out(), HasSubstr("threads " + number.substr(0, number.find(':')) + "\n"));
}

TEST(DevicesTest, OneWorkerAndAUsersChoiceNeedNoWord) {
  Job one({.arguments = Shell({}, "true"), .in_child = [] { unsetenv("OMP_NUM_THREADS"); }});
  EXPECT_EQ(one.Wait(), kSuccess);
  EXPECT_EQ(one.Err(), "");
  Job chosen({.arguments = Shell({"-n", "2"}, "echo $OMP_NUM_THREADS"),
              .variables = {{"OMP_NUM_THREADS", "3"}}});
  EXPECT_EQ(chosen.Wait(), kSuccess);
  EXPECT_EQ(chosen.Err(), "");
  EXPECT_EQ(chosen.Out(), "3\n3\n");
}

TEST(DevicesTest, AMissingInterpreterIsNamedAndTheCodeIsTheShells) {
  ScratchFolder folder;
  std::string file = folder.Script("program", "");
  std::ofstream(file) << "#!/no/interpreter\n";
  Job run({.arguments = {file}});
  EXPECT_EQ(run.Wait(), Code(127));
  EXPECT_THAT(run.Err(),
              HasSubstr("could not be started: start " + file + ": the first line of " + file +
                        " names the interpreter /no/interpreter, which does not "
                        "exist\n"));
}

TEST(DevicesTest, AFileThatIsNoProgramIsSaidAndTheCodeIsTheShells) {
  ScratchFolder folder;
  std::string file = folder.Script("program", "");
  std::ofstream(file) << "echo hello\n";
  Job run({.arguments = {"-n", "2", file}});
  EXPECT_EQ(run.Wait(), Code(126));
  EXPECT_THAT(run.Err(), HasSubstr("could not be started: start " + file +
                                   ": it is a script whose first line is not #! and an "
                                   "interpreter\n"));
}

// Prints the CPUs that the kernel allows to a worker.
const char* const kShowCpus = "grep Cpus_allowed_list /proc/self/status";

TEST(DevicesTest, BoundWorkersHaveCoresOfTheirOwn) {
  auto allowed = AllowedCpus();
  ASSERT_TRUE(allowed);
  if (allowed->size() < 2) GTEST_SKIP() << "this machine has one CPU";
  Job run({.arguments = Shell({"-n", "2", "--bind", "core"}, kShowCpus)});
  std::optional<ProcessExit> exit = run.Wait();
  if (run.Err().find("1 core for 2 workers") != std::string::npos) GTEST_SKIP() << run.Err();
  EXPECT_EQ(exit, kSuccess) << run.Err();
  std::string out = run.Out();
  size_t end = out.find('\n') + 1;
  EXPECT_THAT(out, ::testing::StartsWith("Cpus_allowed_list:\t"));
  EXPECT_NE(out.substr(0, end), out.substr(end)) << out;
}

TEST(DevicesTest, BindingStaysInsideWhatTheLauncherMayUse) {
  auto allowed = AllowedCpus();
  ASSERT_TRUE(allowed);
  int last = allowed->back();
  Job run({.arguments = Shell({"-n", "2", "--bind", "socket"}, kShowCpus), .in_child = [last] {
             cpu_set_t one;
             CPU_ZERO(&one);
             CPU_SET(last, &one);
             sched_setaffinity(0, sizeof one, &one);
           }});
  EXPECT_EQ(run.Wait(), kSuccess) << run.Err();
  std::string line = "Cpus_allowed_list:\t" + std::to_string(last) + "\n";
  EXPECT_EQ(run.Out(), line + line);
}

TEST(DevicesTest, MoreWorkersThanCoresAreRefused) {
  Job run({.arguments = Shell({"-n", "5000", "--bind=core"}, "true")});
  EXPECT_EQ(run.Wait(), Code(2));
  EXPECT_THAT(run.Err(), MatchesRegex("rankrun: bind the workers: binding by core: [0-9]+ cores? "
                                      "for 5000 workers, want at least one for each\n"));
}

TEST(DevicesTest, AWrongBindingIsRefusedWithTheRightOnes) {
  Job run({.arguments = Shell({"--bind", "cores"}, "true")});
  EXPECT_EQ(run.Wait(), Code(2));
  EXPECT_EQ(
      run.Err(),
      "rankrun: --bind: want none, core, numa or socket, got \"cores\"; did you mean core?\n");
}

TEST(DevicesTest, WithoutHwlocThePackageIsNamed) {
  ScratchFolder folder;
  std::ofstream(folder.Path("librankrun_topology.so")) << "no library";
  Job run({.arguments = Shell({"--bind", "core"}, "true"),
           .variables = {{"RANKRUN_PLUGIN_DIR", folder.path()}}});
  EXPECT_EQ(run.Wait(), Code(2));
  EXPECT_THAT(run.Err(), HasSubstr("(is the package libhwloc15 installed?)\n"));
}

}  // namespace
}  // namespace rankrun::testing

// Jobs where the kernel is old or a container denies system calls.

#include <gmock/gmock.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>

#include <filesystem>

#include "tests/base/denied_call.h"
#include "tests/paths.h"
#include "tests/process/nodes.h"

namespace rankrun::testing {
namespace {

using test::DeniedCall;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

// System calls that are younger than Linux 3.10, of rankrun and of its libraries.
const std::vector<DeniedCall> kYoungCalls = {
    {.name = "clone3", .number = SYS_clone3, .error = ENOSYS},
    {.name = "close_range", .number = SYS_close_range, .error = ENOSYS},
    {.name = "copy_file_range", .number = SYS_copy_file_range, .error = ENOSYS},
    {.name = "execveat", .number = SYS_execveat, .error = ENOSYS},
    {.name = "faccessat2", .number = SYS_faccessat2, .error = ENOSYS},
    {.name = "getrandom", .number = SYS_getrandom, .error = ENOSYS},
    {.name = "io_uring_setup", .number = SYS_io_uring_setup, .error = ENOSYS},
    {.name = "membarrier", .number = SYS_membarrier, .error = ENOSYS},
    {.name = "memfd_create", .number = SYS_memfd_create, .error = ENOSYS},
    {.name = "openat2", .number = SYS_openat2, .error = ENOSYS},
    {.name = "pidfd_open", .number = SYS_pidfd_open, .error = ENOSYS},
    {.name = "pidfd_send_signal", .number = SYS_pidfd_send_signal, .error = ENOSYS},
    {.name = "process_vm_readv", .number = SYS_process_vm_readv, .error = ENOSYS},
    {.name = "renameat2", .number = SYS_renameat2, .error = ENOSYS},
    {.name = "rseq", .number = SYS_rseq, .error = ENOSYS},
    {.name = "statx", .number = SYS_statx, .error = ENOSYS},
    {.name = "waitid_P_PIDFD",
     .number = SYS_waitid,
     .error = EINVAL,
     .mask = ~0U,
     .value = P_PIDFD},
    {.name = "clone_CLONE_FILES",
     .number = SYS_clone,
     .error = EINVAL,
     .mask = CLONE_FILES | CLONE_THREAD,
     .value = CLONE_FILES},
};

std::vector<DeniedCall> WithBothErrors() {
  std::vector<DeniedCall> calls;
  for (DeniedCall call : kYoungCalls) {
    calls.push_back(call);
    call.error = EPERM;
    calls.push_back(call);
  }
  return calls;
}

std::string NameOf(const ::testing::TestParamInfo<DeniedCall>& info) {
  return info.param.name + (info.param.error == EPERM ? "_EPERM" : "_Missing");
}

struct DeniedCallsTest : ::testing::TestWithParam<DeniedCall> {
  void SetUp() override { AdoptOrphans(); }

  Job::Options Confined(std::vector<std::string> arguments) const {
    return {.arguments = std::move(arguments),
            .variables = {{"TMPDIR", folder.path()}, {"OMP_NUM_THREADS", "1"}},
            .in_child = [] {
              if (!test::Deny(GetParam())) _exit(98);
            }};
  }
  void ExpectNothingLeft() const {
    EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
  // The C library starts threads by clone3, and accepts no refusal but ENOSYS.
  static bool AllowsThreads() { return GetParam().name != "clone3" || GetParam().error == ENOSYS; }

  ScratchFolder folder;  // TMPDIR of the job
};

TEST_P(DeniedCallsTest, AJobRunsOrRankrunNamesTheCall) {
  Job job(Confined(Shell({"-n2"}, "echo up $RANK")));
  if (!AllowsThreads()) {
    EXPECT_EQ(job.Wait(), Code(205));
    EXPECT_THAT(job.Err(), HasSubstr("clone3")) << job.Err();
    return ExpectNothingLeft();
  }
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_THAT(job.Out(), AllOf(HasSubstr("up 0\n"), HasSubstr("up 1\n")));
  EXPECT_EQ(job.Err(), "");
  ExpectNothingLeft();
}

TEST_P(DeniedCallsTest, AKilledWorkerIsRestarted) {
  if (!AllowsThreads()) GTEST_SKIP() << "nothing starts";
  Job job(Confined(Shell({"-n2", "--max-restarts=1"},
                         "echo up $RANK $TORCHELASTIC_RESTART_COUNT\n"
                         "test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0\n"
                         "setsid sleep 1000 &\n"
                         "test $RANK = 1 && kill -9 $$; wait")));
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_THAT(job.Out(), AllOf(HasSubstr("up 0 1\n"), HasSubstr("up 1 1\n"))) << job.Err();
  EXPECT_THAT(job.Err(), HasSubstr("SIGKILL")) << job.Err();
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

TEST_P(DeniedCallsTest, AKilledAgentIsReplaced) {
  if (!AllowsThreads()) GTEST_SKIP() << "nothing starts";
  Job job(Confined(Shell({"-n2", "--max-restarts=1"},
                         "echo up $RANK $TORCHELASTIC_RESTART_COUNT\n"
                         "test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0; sleep 1000")));
  ASSERT_TRUE(job.WaitForOut("up 0 0\n") && job.WaitForOut("up 1 0\n")) << job.Err();
  pid_t agent = 0;
  ASSERT_TRUE(WaitFor([&] { return (agent = AgentOf(job)) != 0; }));
  kill(agent, SIGKILL);
  EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
  EXPECT_THAT(job.Out(), AllOf(HasSubstr("up 0 1\n"), HasSubstr("up 1 1\n"))) << job.Err();
  ExpectNothingLeft();
}

// Rank 1 dies after some calls, and the others hear of it.
TEST_P(DeniedCallsTest, RanksFindATransportAndHearOfADeath) {
  if (!AllowsThreads()) GTEST_SKIP() << "nothing starts";
  auto options = Confined({"-n3", "--no-python", test::Program("partner"), "all_reduce"});
  options.variables["RANKRUN_LOG"] = "info";
  Job job(options);
  EXPECT_TRUE(job.Wait()) << job.Err();
  EXPECT_THAT(job.Out(), HasSubstr("died")) << job.Err();
  EXPECT_EQ(Count(job.Out(), "heard"), 2) << job.Out() << job.Err();
  EXPECT_THAT(job.Err(), ContainsRegex("cause: rank 1 \\(pid [0-9]+\\): killed by SIGKILL"));
  const std::string backend = GetParam().name == "memfd_create" ? "tcp" : "shm";
  EXPECT_THAT(job.Err(), HasSubstr("backend " + backend)) << job.Err();
}

INSTANTIATE_TEST_SUITE_P(Calls, DeniedCallsTest, ::testing::ValuesIn(WithBothErrors()), NameOf);

struct DeniedCallsNodesTest : NodesTest {};

TEST_F(DeniedCallsNodesTest, TwoNodesRunWithoutPidfds) {
  in_child = [] {
    if (!test::Deny({.name = "pidfd_open", .number = SYS_pidfd_open, .error = ENOSYS})) _exit(98);
  };
  const std::string script =
      "echo up $RANK $TORCHELASTIC_RESTART_COUNT\n"
      "test $TORCHELASTIC_RESTART_COUNT = 1 && exit 0\n"
      "test $RANK = 1 && kill -9 $$; sleep 1000";
  Job& host = StartHost({"-n1", "--node-rank=0", "--max-restarts=1"}, script);
  Job& guest = StartGuest({"-n1", "--node-rank=1", "--max-restarts=1"}, script);
  EXPECT_EQ(host.Wait(), Code(0)) << Errors();
  EXPECT_EQ(guest.Wait(), Code(0)) << Errors();
  EXPECT_THAT(host.Out(), HasSubstr("up 0 1\n"));
  EXPECT_THAT(guest.Out(), HasSubstr("up 1 1\n"));
  EXPECT_TRUE(NothingIsLeft(milliseconds(0)));
}

}  // namespace
}  // namespace rankrun::testing

// Jobs whose processes hide their files from others of their user: they are not dumpable.

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/paths.h"
#include "tests/process/harness.h"

namespace rankrun::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kWhy[] =
    "the process of a rank is not dumpable: its program cannot be read or has capabilities, or it "
    "has changed its user or called prctl, so that no other process can open its files in /proc\n";

struct HiddenProcessTest : ::testing::Test {
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to run as another user";
    ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  }

  // Runs three ranks as a user without privileges.
  Job::Options Ranks(const std::string& program, const std::vector<std::string>& hidden,
                     const std::string& backend = "auto") const {
    std::vector<std::string> arguments = {"-n3", "--no-python", program};
    arguments.insert(arguments.end(), hidden.begin(), hidden.end());
    return {.arguments = std::move(arguments),
            .variables = {{"RANKRUN_LOG", "info"}, {"RANKRUN_BACKEND", backend}},
            .in_child = [] {
              if (setgid(65534) != 0 || setuid(65534) != 0) _exit(99);
            }};
  }

  static void ExpectBackend(const std::string& backend, Job& job) {
    EXPECT_EQ(job.Wait(), Code(0)) << job.Err();
    EXPECT_EQ(Count(job.Out(), backend + " 3\n"), 3) << job.Out() << job.Err();
  }
  static void ExpectBackendAndWhy(const std::string& backend, Job& job) {
    ExpectBackend(backend, job);
    EXPECT_EQ(Count(job.Err(), ": backend " + backend + ", as " + kWhy), 3) << job.Err();
  }

  const std::string program = test::Program("hidden");
  ScratchFolder folder;
};

TEST_F(HiddenProcessTest, RanksThatHideNothingShareMemory) {
  Job job(Ranks(program, {}));
  ExpectBackend("shm", job);
}

TEST_F(HiddenProcessTest, OneHiddenRankIsReachedByTcp) {
  for (const std::string rank : {"0", "2"}) {
    Job job(Ranks(program, {rank}));
    ExpectBackendAndWhy("hierarchical", job);
  }
}

TEST_F(HiddenProcessTest, HiddenRanksUseTcp) {
  Job job(Ranks(program, {"0", "1", "2"}));
  ExpectBackendAndWhy("tcp", job);
}

TEST_F(HiddenProcessTest, RanksOfAProgramThatCannotBeReadUseTcp) {
  const std::string copy = folder.Path("unreadable");
  std::filesystem::copy_file(program, copy);
  ASSERT_EQ(chmod(copy.c_str(), 0711), 0);
  Job job(Ranks(copy, {}));
  ExpectBackendAndWhy("tcp", job);
}

TEST_F(HiddenProcessTest, SharedMemoryThatIsAskedForIsRefusedWithTheReason) {
  Job job(Ranks(program, {"0"}, "shm"));
  const auto exit = job.Wait();
  ASSERT_TRUE(exit);
  EXPECT_NE(*exit, Code(0));
  EXPECT_THAT(job.Err(), AllOf(HasSubstr("share memory: this process is not dumpable"),
                               HasSubstr("which the backend shm needs; want tcp")));
}

// A rank that others do not map may be hidden.
TEST_F(HiddenProcessTest, AHiddenRankCanOpenTheSharedMemoryOfAnother) {
  Job job(Ranks(program, {"1", "2"}, "shm"));
  ExpectBackend("shm", job);
}

}  // namespace
}  // namespace rankrun::testing

// Choice of the backend of a group: by the program, by the user, or by default.

#include <gmock/gmock.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/rankrun.h>

#include "base/process/dumpable.h"
#include "comm/world/host_identity.h"
#include "comm/world/join_group.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::ExitedWithCode;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kHere[] = "boot-1/4026531836/1000";

TEST(ChooseBackendTest, MembersOfOneHostShareMemory) {
  for (size_t members : {1U, 2U, 5U}) {
    Choice choice = ChooseBackend(std::vector<std::string>(members, kHere));
    EXPECT_EQ(choice.backend, "shm");
    EXPECT_EQ(choice.why, "all ranks are on one host");
  }
}

TEST(ChooseBackendTest, AMemberOfAnotherBootNamespaceOrUserIsReachedInAHierarchy) {
  std::string of_one_host = "the ranks are of several users or PID namespaces of one host";
  std::map<std::string, std::string> others{
      {"boot-2/4026531836/1000", "the ranks are on several hosts"},
      {"boot-1/4026532000/1000", of_one_host},
      {"boot-1/4026531836/1001", of_one_host},
      {"boot-1/4026531836/1000/without shared memory/7",
       "a rank has no memory to share: the system call memfd_create (Linux 3.17) is refused"},
      {"boot-1/4026531836/1000/not dumpable/7",
       std::string("the process of a rank ") + kHiddenFiles},
      {"unknown/7", "a rank cannot tell which host it is on"}};
  for (const auto& [other, why] : others) {
    for (size_t who = 0; who < 3; ++who) {
      std::vector<std::string> hosts(3, kHere);
      hosts[who] = other;
      Choice choice = ChooseBackend(hosts);
      EXPECT_EQ(choice.backend, "hierarchical") << other << " at " << who;
      EXPECT_EQ(choice.why, why);
    }
  }
}

TEST(ChooseBackendTest, MembersThatShareNoMemoryUseTcp) {
  EXPECT_EQ(ChooseBackend({"boot-1/1/0", "boot-2/1/0"}).backend, "tcp");
  EXPECT_EQ(ChooseBackend({"unknown/7", "unknown/8", "boot-1/1/0"}).backend, "tcp");
}

// Splits "BOOT/NAMESPACE/USER".
std::vector<std::string> PartsOf(const std::string& identity) {
  std::vector<std::string> parts;
  std::istringstream text(identity);
  for (std::string part; std::getline(text, part, '/');) parts.push_back(part);
  return parts;
}

TEST(HostIdentityTest, IsTheSameInEveryProcessOfAUser) {
  EXPECT_EQ(ChildProcess(HostIdentity).Text(), HostIdentity());
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  EXPECT_THAT(PartsOf(HostIdentity()),
              ElementsAre(boot, testing::Not(""), std::to_string(geteuid())));
}

TEST(HostIdentityTest, IsAnotherForAnotherUser) {
  auto other = ChildProcess([] {
                 bool is_other = seteuid(65534) == 0 || unshare(CLONE_NEWUSER) == 0;
                 return is_other ? HostIdentity() : "";
               }).Text();
  if (other.empty()) GTEST_SKIP() << "no other user is permitted";
  auto here = PartsOf(HostIdentity());
  auto there = PartsOf(other);
  ASSERT_GE(there.size(), 3U) << other;
  there.resize(3);  // the rest says that a process which has changed its user is not dumpable
  EXPECT_THAT(there, ElementsAre(here[0], here[1], testing::Ne(here[2])));
}

TEST(HostIdentityTest, IsUniqueInAProcessThatIsNotDumpable) {
  const auto hidden = [] {
    // As root, a change of the user makes a process not dumpable, and takes its privileges.
    const bool is_hidden = geteuid() == 0 ? setuid(65534) == 0 : prctl(PR_SET_DUMPABLE, 0) == 0;
    return is_hidden ? HostIdentity() : "";
  };
  const std::string one = ChildProcess(hidden).Text();
  EXPECT_TRUE(HidesFiles(one)) << one;
  EXPECT_FALSE(HidesFiles(HostIdentity()));
  EXPECT_NE(one, ChildProcess(hidden).Text());
}

TEST(HostIdentityTest, IsAnotherInAnotherPidNamespace) {
  auto other = ChildProcess([] {
                 // Affects the children only.
                 if (unshare(CLONE_NEWPID) != 0) return std::string();
                 return ChildProcess(HostIdentity).Text();
               }).Text();
  if (other.empty()) GTEST_SKIP() << "no PID namespace is permitted";
  auto here = PartsOf(HostIdentity());
  EXPECT_THAT(PartsOf(other), ElementsAre(here[0], testing::Ne(here[1]), here[2]));
}

// Returns the backend of a world with `options`, and that of a group in it.
std::string BackendsWith(InitOptions options, const GroupOptions& group = {}) {
  options.timeout = std::chrono::seconds(60);
  ProcessGroup& world = Init(options);
  std::string backends = world.backend() + " " + NewGroup(group).backend();
  Destroy();
  return backends;
}

TEST(BackendTest, RanksOfOneHostShareMemoryByDefault) {
  auto told = OnRanks(2, [] {
    unsetenv("RANKRUN_BACKEND");
    return BackendsWith({});
  });
  EXPECT_THAT(told, Each("shm shm"));
}

TEST(BackendTest, TheVariableWinsOverTheOption) {
  auto told = OnRanks(2, [] {
    setenv("RANKRUN_BACKEND", "gloo", 1);
    return BackendsWith({.backend = "shm"}) + ", " + BackendsWith({}, {.backend = "shm"});
  });
  EXPECT_THAT(told, Each("gloo gloo, gloo gloo"));
}

TEST(BackendTest, LowerAndUpperCaseAreEqual) {
  auto told = OnRanks(2, [](int r) {
    unsetenv("RANKRUN_BACKEND");
    std::string text =
        BackendsWith({.backend = r == 0 ? "GLOO" : "gloo"}, {.backend = r == 0 ? "shm" : "Shm"});
    text += ", " + BackendsWith({.backend = "AUTO"});
    setenv("RANKRUN_BACKEND", r == 0 ? "gloo" : "Gloo", 1);
    return text + ", " + BackendsWith({});
  });
  EXPECT_THAT(told, Each("gloo shm, shm shm, gloo gloo"));
}

TEST(BackendTest, LowerAndUpperCaseAreEqualInC) {
  auto told = OnRanks(1, [] {
    unsetenv("RANKRUN_BACKEND");
    rankrun_init_options options{};
    options.size = sizeof options;
    rankrun_init_options_default(&options);
    options.backend = "GLOO";
    if (rankrun_init(&options) != RANKRUN_OK) return std::string(rankrun_last_error());
    std::string backend = rankrun_group_backend(nullptr);
    rankrun_destroy(nullptr);
    return backend + " " + std::to_string(rankrun_backend_available("GLOO")) +
           std::to_string(rankrun_backend_available("SHM"));
  });
  EXPECT_THAT(told, Each("gloo 11"));
}

TEST(BackendTest, AMapOfDevicesNamesTheBackendForTheCpu) {
  auto told = OnRanks(2, [](int rank) {
    unsetenv("RANKRUN_BACKEND");
    return BackendsWith({.backend = rank == 0 ? "CPU:tcp" : "tcp"});
  });
  EXPECT_THAT(told, Each("tcp tcp"));
}

// Without a GPU; or without the plug-in, or the libraries that it needs.
TEST(BackendTest, AMapWithABackendThatThisMachineLacksIsRefused) {
  if (BackendAvailable("nccl")) GTEST_SKIP() << "this machine has GPUs and NCCL";
  auto told = OnRanks(1, [] {
    setenv("RANKRUN_BACKEND", "cpu:shm,cuda:nccl", 1);
    return BackendsWith({});
  });
  EXPECT_THAT(told[0],
              AllOf(HasSubstr("Error: Init: join the world process group, rank 0 of 1: "
                              "RANKRUN_BACKEND: "),
                    AnyOf(HasSubstr("backend nccl: this process has no GPU that CUDA can use: "),
                          HasSubstr("this rankrun has none with NCCL, for NVIDIA GPUs"),
                          HasSubstr("backend nccl: cannot load "))));
}

// The level is read once per process, so each case has a process of its own.
struct BackendLogDeathTest : testing::Test {
  BackendLogDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  [[noreturn]] static void JoinWith(const char* backend) {
    setenv("RANKRUN_LOG", "info", 1);
    setenv("RANKRUN_BACKEND", backend, 1);
    OnRanks(2, [] { return BackendsWith({}); });
    _exit(0);
  }

  static auto Says(const std::string& group, const std::string& choice) {
    return HasSubstr("rankrun: info: " + group + ": backend " + choice + "\n");
  }
};

TEST_F(BackendLogDeathTest, EachRankSaysWhatWasTakenAndWhy) {
  std::string chosen = "shm, as all ranks are on one host";
  EXPECT_EXIT(JoinWith("auto"), ExitedWithCode(0),
              AllOf(Says("the world process group, rank 0 of 2", chosen),
                    Says("the world process group, rank 1 of 2", chosen)));
  EXPECT_EXIT(JoinWith("gloo"), ExitedWithCode(0),
              AllOf(Says("the world process group, rank 0 of 2", "gloo, as asked for"),
                    Says("the world process group, rank 1 of 2", "gloo, as asked for")));
}

}  // namespace
}  // namespace rankrun::comm

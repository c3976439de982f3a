#include "agent/report/kill_evidence.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "tests/base/support.h"

namespace rankrun::agent {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

WorkerRecord KilledBy(int number) {
  WorkerRecord worker;
  worker.exit = ProcessExit{.signaled = true, .value = number};
  return worker;
}

struct KillEvidenceTest : testing::Test {
  KillEvidence evidence{
      .before = MemoryEvents{.oom_kills = 2, .of_cgroup = true, .limit = 64 * kGiB},
      .after = MemoryEvents{.oom_kills = 3, .of_cgroup = true, .limit = 64 * kGiB},
      .shared_memory = Space{.bytes = 64 << 20, .available = 4096}};
};

TEST_F(KillEvidenceTest, ARisenCountOfOomKillsExplainsASigkill) {
  EXPECT_EQ(ExplainKill(KilledBy(SIGKILL), evidence),
            "the kernel's OOM killer was at work in this cgroup (limit 64 GiB)");
  evidence.after->limit.reset();
  EXPECT_EQ(ExplainKill(KilledBy(SIGKILL), evidence),
            "the kernel's OOM killer was at work in this cgroup");
  evidence.before->of_cgroup = evidence.after->of_cgroup = false;
  EXPECT_EQ(ExplainKill(KilledBy(SIGKILL), evidence),
            "the kernel's OOM killer was at work on this machine");
}

TEST_F(KillEvidenceTest, WithoutARiseThereIsNoExplanation) {
  evidence.after->oom_kills = 2;
  EXPECT_EQ(ExplainKill(KilledBy(SIGKILL), evidence), "");
  evidence.after.reset();
  EXPECT_EQ(ExplainKill(KilledBy(SIGKILL), evidence), "");
  evidence = {};
  EXPECT_EQ(ExplainKill(KilledBy(SIGKILL), evidence), "");
  EXPECT_EQ(ExplainKill(KilledBy(SIGBUS), evidence), "");
}

TEST_F(KillEvidenceTest, OurOwnSignalsAndOtherEndsHaveNoExplanation) {
  WorkerRecord ours = KilledBy(SIGKILL);
  ours.sent_signal = SIGKILL;
  EXPECT_EQ(ExplainKill(ours, evidence), "");
  EXPECT_EQ(ExplainKill(KilledBy(SIGSEGV), evidence), "");
  WorkerRecord exited;
  exited.exit = ProcessExit{.signaled = false, .value = SIGKILL};
  EXPECT_EQ(ExplainKill(exited, evidence), "");
  EXPECT_EQ(ExplainKill(WorkerRecord{}, evidence), "");
}

TEST_F(KillEvidenceTest, AFullDevShmExplainsASigbus) {
  EXPECT_EQ(ExplainKill(KilledBy(SIGBUS), evidence), "/dev/shm is full (64 MiB)");
  evidence.shared_memory->available = 32 << 20;
  EXPECT_EQ(ExplainKill(KilledBy(SIGBUS), evidence), "");
}

// Provides the kernel's files in a folder of the test.
struct MemoryEventsTest : testing::Test {
  void Write(const std::string& name, const std::string& text) { folder.Write(name, text); }
  std::optional<MemoryEvents> Read() { return ReadMemoryEvents(folder.path()); }
  test::TempFolder folder;
};

TEST_F(MemoryEventsTest, OfOurCgroupWithTheSmallestLimitOfItsAncestors) {
  Write("proc/self/cgroup", "0::/job/step\n");
  Write("sys/fs/cgroup/job/step/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 7\n");
  Write("sys/fs/cgroup/job/step/memory.max", "max\n");
  Write("sys/fs/cgroup/job/memory.events", "oom_kill 99\n");
  Write("sys/fs/cgroup/job/memory.max", "1073741824\n");
  auto events = Read();
  ASSERT_TRUE(events);
  EXPECT_EQ(events->oom_kills, 7u);
  EXPECT_TRUE(events->of_cgroup);
  EXPECT_EQ(events->limit, kGiB);
}

TEST_F(MemoryEventsTest, OfAContainerThatSeesItsCgroupAtTheTop) {
  Write("proc/self/cgroup", "0::/host/name\n");
  Write("sys/fs/cgroup/memory.events", "oom_kill 3\n");
  Write("sys/fs/cgroup/memory.max", "2147483648\n");
  EXPECT_EQ(Read()->oom_kills, 3u);
  EXPECT_EQ(Read()->limit, 2 * kGiB);
  Write("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(Read()->oom_kills, 3u);
}

TEST_F(MemoryEventsTest, OfCgroupVersionOne) {
  Write("proc/self/cgroup", "12:cpu,cpuacct:/c\n9:memory:/job\n0::/job\n");
  Write("sys/fs/cgroup/memory/job/memory.oom_control",
        "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
  Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Read()->oom_kills, 4u);
  EXPECT_EQ(Read()->limit, std::nullopt);
}

TEST_F(MemoryEventsTest, OfTheMachineWithoutACgroup) {
  Write("proc/self/cgroup", "0::/\n");
  Write("proc/vmstat", "nr_free_pages 1\noom_kill 5\n");
  EXPECT_EQ(Read()->oom_kills, 5u);
  EXPECT_FALSE(Read()->of_cgroup);
}

TEST_F(MemoryEventsTest, MayBeMissingOrDamaged) {
  EXPECT_FALSE(Read());
  Write("proc/self/cgroup", "noise\n0:\n");
  Write("proc/vmstat", "oom_kill many\n");
  EXPECT_FALSE(Read());
}

TEST(SpaceTest, IsThatOfAFolder) {
  test::TempFolder folder;
  auto space = ReadSpace(folder.path());
  ASSERT_TRUE(space);
  EXPECT_GT(space->bytes, 0u);
  EXPECT_LE(space->available, space->bytes);
  EXPECT_FALSE(ReadSpace(folder.Path("gone")));
}

}  // namespace
}  // namespace rankrun::agent

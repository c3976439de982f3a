// Segments that not all ranks join.

#include "comm/shm/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "tests/comm/shm/ranks.h"

namespace rankrun::comm::shm {
namespace {

using std::chrono::milliseconds;

constexpr size_t kBounceBytes = SegmentLayout::kPage;

TEST(ShmSegmentTest, ALateRankGetsTheReasonOfAFailedMeeting) {
  MemoryStore store(std::make_shared<MemoryKeys>());
  BackendConfig config = ShmConfig(store, 0, 2);
  config.timeout = milliseconds(30);
  EXPECT_FALSE(Segment::Meet(config, kBounceBytes));  // closes the memory, too
  auto late = Segment::Meet(ShmConfig(store, 1, 2), kBounceBytes);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kSystem);
  EXPECT_EQ(late.error().message, "rank 0: rank 1 did not join within 0.030 s");
}

// Maps the memory of rank 0 as another rank would.
std::byte* MapTheMemory(store::Store& store, const SegmentLayout& layout) {
  auto where = store.Get("group/shm/segment", std::chrono::seconds(30));
  EXPECT_TRUE(where);
  int pid = 0, fd = 0;
  EXPECT_EQ(std::sscanf(where->c_str(), "%d %d", &pid, &fd), 2);
  std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  Fd file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  void* base = mmap(nullptr, layout.size(), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  EXPECT_NE(base, MAP_FAILED);
  return static_cast<std::byte*>(base);
}

// Returns field 22 of /proc/<pid>/stat; the name before contains no space.
uint64_t StartTimeOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string field;
  for (int i = 0; i < 22; ++i) file >> field;
  return std::stoull(field);
}

// Joins a group as rank 1 with the process `pid`, which started then.
void JoinSegmentAs(pid_t pid, uint64_t start_time, const std::shared_ptr<MemoryKeys>& keys) {
  MemoryStore store(keys);
  SegmentLayout layout{
      .world_size = 2, .bounce_bytes = kBounceBytes, .message_bytes = MessageBytes(2)};
  std::byte* base = MapTheMemory(store, layout);
  RankArea& area = *reinterpret_cast<RankArea*>(base + layout.AreaAt(1));
  area.pid = pid;
  area.start_time = start_time;
  area.ready.store(RankArea::kMapped, std::memory_order_release);
  munmap(base, layout.size());
}

// The process is dead when it should be watched, and its pid has another start
// time.
TEST(ShmSegmentTest, ARankThatDiesAsItIsWatchedIsLost) {
  ChildProcess other([] { return ""; });
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(other.pid()), &ended, WEXITED | WNOWAIT), 0);
  auto keys = std::make_shared<MemoryKeys>();
  std::jthread meets([&keys, pid = other.pid()] {
    MemoryStore store(keys);
    auto segment = Segment::Meet(ShmConfig(store, 0, 2), kBounceBytes);
    ASSERT_FALSE(segment);
    EXPECT_EQ(segment.error().code, ErrorCode::kPeerLost);
    EXPECT_EQ(segment.error().message, "rank 1 (pid " + std::to_string(pid) + ") died");
  });
  JoinSegmentAs(other.pid(), 0, keys);
}

TEST(ShmSegmentTest, AProcessOfAnotherUserIsNoRank) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  constexpr uid_t kNobody = 65534;
  enum Step { kNone, kDone, kImpossible };
  InSharedMemory<std::atomic<int>> step;
  ChildProcess other([&] {
    *step = setresuid(kNobody, kNobody, kNobody) == 0 ? kDone : kImpossible;
    pause();
    return "";
  });
  while (*step == kNone) sched_yield();
  if (*step == kImpossible) GTEST_SKIP() << "there is no user 65534 here";
  auto keys = std::make_shared<MemoryKeys>();
  std::jthread meets([&keys, pid = other.pid()] {
    MemoryStore store(keys);
    auto segment = Segment::Meet(ShmConfig(store, 0, 2), kBounceBytes);
    ASSERT_FALSE(segment);
    EXPECT_THAT(segment.error().message,
                testing::StartsWith("rank 1 (pid " + std::to_string(pid) +
                                    ") runs as user 65534, this rank as user 0"));
  });
  JoinSegmentAs(other.pid(), StartTimeOf(other.pid()), keys);
}

}  // namespace
}  // namespace rankrun::comm::shm

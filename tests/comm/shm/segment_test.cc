// Segments that not all ranks join.

#include "comm/shm/segment.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cstdio>
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
  MemoryStore store(keys);
  SegmentLayout layout{
      .world_size = 2, .bounce_bytes = kBounceBytes, .message_bytes = MessageBytes(2)};
  std::byte* base = MapTheMemory(store, layout);
  RankArea& area = *reinterpret_cast<RankArea*>(base + layout.AreaAt(1));
  area.pid = other.pid();
  area.start_time = 0;
  area.ready.store(RankArea::kMapped, std::memory_order_release);
  meets.join();
  munmap(base, layout.size());
}

}  // namespace
}  // namespace rankrun::comm::shm

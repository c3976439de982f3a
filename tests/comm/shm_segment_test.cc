// Meetings that come to nothing.

#include <gtest/gtest.h>

#include <memory>

#include "comm/shm/segment.h"
#include "tests/comm/shm_ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kBounceBytes = SegmentLayout::kPage;

TEST(ShmSegmentTest, WhoComesAfterAMeetingHasFailedIsToldWhy) {
  MemoryStore store(std::make_shared<MemoryKeys>());
  BackendConfig config = ShmConfig(store, 0, 2);
  config.timeout = milliseconds(30);
  EXPECT_FALSE(Segment::Meet(config, kBounceBytes));  // and closes the memory
  auto late = Segment::Meet(ShmConfig(store, 1, 2), kBounceBytes);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kSystem);
  EXPECT_EQ(late.error().message, "rank 0: rank 1 did not come within 0.030 s");
}

}  // namespace
}  // namespace rankrun::comm

#include "comm/gloo/copy_room.h"

#include <gtest/gtest.h>

namespace rankrun::comm::gloo {
namespace {

constexpr size_t kMaxBytes = 64 << 10;

TEST(CopyRoomTest, ALongMessageHasNoRoom) {
  CopyRoom room(2);
  EXPECT_FALSE(room.Take(1, kMaxBytes + 1));
  EXPECT_TRUE(room.Take(1, kMaxBytes));
  EXPECT_EQ(room.copies(), 1U);
}

TEST(CopyRoomTest, EachReceiverHasAMebibyte) {
  CopyRoom room(3);
  size_t copies = 0;
  while (room.Take(1, kMaxBytes)) ++copies;
  EXPECT_EQ(copies, 15U);  // each needs a control message, too
  EXPECT_TRUE(room.Take(2, kMaxBytes));
  EXPECT_EQ(room.Receivers({7, 8, 9}), (std::vector{8, 9}));
  room.Return(1, kMaxBytes);
  EXPECT_TRUE(room.Take(1, kMaxBytes));
}

TEST(CopyRoomTest, MessagesWithoutDataNeedRoomToo) {
  CopyRoom room(2);
  size_t copies = 0;
  while (room.Take(1, 0)) ++copies;
  EXPECT_GT(copies, 500U);
  EXPECT_LT(copies, 2000U);
  for (; copies > 0; --copies) room.Return(1, 0);
  EXPECT_EQ(room.copies(), 0U);
  EXPECT_TRUE(room.Receivers({7, 8}).empty());
}

}  // namespace
}  // namespace rankrun::comm::gloo

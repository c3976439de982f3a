// Shared memory that another process has overwritten, or made to be mapped.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/comm/async/message_ranks.h"
#include "tests/comm/shm/ranks.h"

namespace rankrun::comm::shm {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// Returns the state of the channel from rank 0 to rank 1.
ChannelState& ChannelOf(const MessageRank& me) {
  MessageLayout layout{.world_size = me.ranks()};
  return *reinterpret_cast<ChannelState*>(me.segment().messages() + layout.StateAt(0, 1));
}

// The parameter is added to a position in the shared memory.
struct ShmDamageTest : testing::TestWithParam<uint64_t> {};

TEST_P(ShmDamageTest, ASendersImpossiblePositionEndsTheGroup) {
  RunMessageRanks(2, [](MessageRank& me) {
    if (me.rank() == 0) {
      ChannelOf(me).written += GetParam();
      EXPECT_THAT(me.Recv(1, 1), HasSubstr("shared with rank 10 is damaged"));
    } else {
      EXPECT_EQ(me.Recv(1, 0),
                "error: the memory for messages shared with rank 10 is damaged: its counters "
                "cannot be right");
      EXPECT_TRUE(me.segment().failed());
    }
  });
}

TEST_P(ShmDamageTest, AReceiversImpossiblePositionEndsTheGroup) {
  RunMessageRanks(2, [](MessageRank& me) {
    if (me.rank() == 0) {
      std::string large(1 << 20, 'x');
      auto sent = me.Send(large, 1);
      ASSERT_FALSE(sent);
      EXPECT_THAT(sent.error().message, HasSubstr("shared with rank 11 is damaged"));
    } else {
      ChannelOf(me).read += GetParam();
      while (!me.segment().failed()) std::this_thread::yield();  // a receive would mend it
      EXPECT_THAT(me.Recv(1, 0, /*tag=*/7), HasSubstr("is damaged"));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Positions, ShmDamageTest,
                         testing::Values(uint64_t{1} << 20, uint64_t{1} << 63, 1, ~uint64_t{31}));

TEST(ShmDamagedTextTest, ATextWithoutAnEndIsItsField) {
  const struct {
    char field[4] = {'a', 'b', 'c', 'd'};
    char next[4] = "efg";
  } memory;
  EXPECT_EQ(TextOf(memory.field), "abcd");
  RunMessageRanks(2, [](MessageRank& me) {
    me.Meet();
    if (me.rank() == 1) return;
    SegmentHeader& header = me.segment().header();
    std::fill(std::begin(header.error_text), std::end(header.error_text), 'x');
    header.error_code = 4711;
    header.error_state = SegmentHeader::kWritten;
    auto error = me.segment().errors().Published();
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::kSystem);
    EXPECT_EQ(error->message, std::string(kErrorBytes, 'x'));
  });
}

TEST(ShmOtherUserTest, TheMemoryOfAnotherUserIsNotMapped) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  auto keys = std::make_shared<MemoryKeys>();
  RunRanks(2, [&](int rank) {
    MemoryStore store(keys);
    // The system call changes this thread only, glibc's function all threads.
    if (rank == 0) {
      ASSERT_EQ(syscall(SYS_setresuid, -1, kNobody, -1), 0);
      prctl(PR_SET_DUMPABLE, 1);  // the kernel has cleared it
    }
    auto segment = Segment::Meet(ShmConfig(store, rank, 2), SegmentLayout::kPage);
    ASSERT_FALSE(segment);
    EXPECT_THAT(segment.error().message,
                HasSubstr("it belongs to user 65534, this rank runs as user 0"));
  });
}

}  // namespace
}  // namespace rankrun::comm::shm

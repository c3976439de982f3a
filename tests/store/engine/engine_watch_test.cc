#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/store/engine/engine_fixture.h"

namespace rankrun::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Change = NoticeReply::Change;

struct EngineWatchTest : EngineTest {
  void Watch(ConnectionId watcher, const std::string& key) {
    EXPECT_THAT(Ask(watcher, WatchKeyRequest{key}),
                ElementsAre(Outgoing{watcher, WatchReply::kRegistered}));
  }
};

Outgoing Notice(ConnectionId to, Change change, const std::string& old_value,
                const std::string& new_value) {
  return {to, NoticeReply{change, "k", old_value, new_value}};
}

TEST_F(EngineWatchTest, EachChangeIsReportedWithBothValues) {
  Watch(1, "k");
  EXPECT_THAT(Ask(2, SetRequest{"k", "one"}), ElementsAre(Notice(1, Change::kCreated, "", "one")));
  EXPECT_THAT(Ask(2, SetRequest{"k", "one"}),
              ElementsAre(Notice(1, Change::kUpdated, "one", "one")));
  EXPECT_THAT(Ask(2, AppendRequest{"k", "!"}),
              ElementsAre(Notice(1, Change::kUpdated, "one", "one!")));
  EXPECT_THAT(Ask(2, DeleteKeyRequest{"k"}),
              ElementsAre(Notice(1, Change::kDeleted, "one!", ""), Number(2, 1)));
  EXPECT_THAT(Ask(2, AddRequest{"k", 5}),
              ElementsAre(Notice(1, Change::kCreated, "", "5"), Number(2, 5)));
  EXPECT_THAT(
      Ask(2, MultiSetRequest{{{"k", "a"}, {"x", "b"}, {"k", "c"}}}),
      ElementsAre(Notice(1, Change::kUpdated, "5", "a"), Notice(1, Change::kUpdated, "a", "c")));
}

TEST_F(EngineWatchTest, RequestsWithoutAChangeCauseNoNotice) {
  Ask(2, SetRequest{"k", "v"});
  Watch(1, "k");
  EXPECT_THAT(Ask(2, CompareSetRequest{"k", "other", "x"}), ElementsAre(Text(2, "v")));
  EXPECT_THAT(Ask(2, DeleteKeyRequest{"other"}), ElementsAre(Number(2, 0)));
  EXPECT_THAT(Ask(2, QueuePushRequest{"k", "v"}), IsEmpty());
  EXPECT_THAT(Ask(2, CompareSetRequest{"k", "v", "v"}),
              ElementsAre(Notice(1, Change::kUpdated, "v", "v"), Text(2, "v")));
}

TEST_F(EngineWatchTest, EveryWatchGetsItsOwnNoticeAfterTheWaits) {
  Watch(1, "k");
  Watch(2, "k");
  Watch(1, "k");
  Ask(3, WaitRequest{{"k"}});
  EXPECT_THAT(
      Ask(4, SetRequest{"k", "v"}),
      ElementsAre(Released(3), Notice(1, Change::kCreated, "", "v"),
                  Notice(2, Change::kCreated, "", "v"), Notice(1, Change::kCreated, "", "v")));
}

TEST_F(EngineWatchTest, ABarrierReportsItsCounter) {
  Watch(1, "k");
  EXPECT_THAT(Ask(2, BarrierRequest{"k", 2}), ElementsAre(Notice(1, Change::kCreated, "", "1")));
  EXPECT_THAT(Ask(3, BarrierRequest{"k", 2}),
              ElementsAre(Notice(1, Change::kUpdated, "1", "2"), Released(2), Released(3)));
}

TEST_F(EngineWatchTest, AWatchEndsWithItsConnectionAndNotBefore) {
  Watch(1, "k");
  Ask(1, CancelWaitRequest{});
  engine.CancelWaits(1);
  EXPECT_THAT(Ask(2, SetRequest{"k", "v"}), ElementsAre(Notice(1, Change::kCreated, "", "v")));
  engine.Disconnect(1);
  EXPECT_THAT(Ask(2, SetRequest{"k", "w"}), IsEmpty());
  Ask(2, DeleteKeyRequest{"k"});
  EXPECT_EQ(engine.bytes(), 0u);
}

TEST_F(EngineWatchTest, AWatchDoesNotCreateTheKey) {
  Watch(1, "k");
  EXPECT_EQ(engine.key_count(), 0u);
  EXPECT_FALSE(Exists("k"));
}

TEST(EngineWatchLimitTest, AChangeWithTooLargeNoticesIsRefused) {
  Engine engine(size_t{1} << 30, /*largest_reply_bytes=*/1000);
  std::vector<Outgoing> replies;
  for (ConnectionId id = 1; id <= 10; ++id) {
    ASSERT_TRUE(engine.Apply(id, WatchKeyRequest{"k"}, replies));
  }
  replies.clear();
  EXPECT_TRUE(engine.Apply(11, SetRequest{"k", std::string(99, 'v')}, replies));
  EXPECT_EQ(replies.size(), 10u);
  replies.clear();
  auto refused = engine.Apply(11, SetRequest{"k", "v"}, replies);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kSystem);
  EXPECT_THAT(refused.error().message, HasSubstr("take 1010 bytes, over the limit of 1000"));
  EXPECT_THAT(replies, IsEmpty());
}

TEST(EngineWatchLimitTest, WatchesFillTheStore) {
  Engine engine(10'000, /*largest_reply_bytes=*/1000);
  std::vector<Outgoing> replies;
  size_t watches = 0;
  while (watches < 1000 && engine.Apply(1, WatchKeyRequest{"k"}, replies)) ++watches;
  EXPECT_GT(watches, 50u);
  EXPECT_LT(watches, 150u);
}

TEST(EngineWatchLimitTest, NoticesTakeNoMoreThanTheStoreMay) {
  Engine engine(size_t{1} << 30, size_t{1} << 30);
  std::vector<Outgoing> replies;
  for (ConnectionId id = 1; id <= 10; ++id) {
    ASSERT_TRUE(engine.Apply(id, WatchKeyRequest{"k"}, replies));
  }
  engine.LimitMemory(10'000);
  EXPECT_TRUE(engine.Apply(11, SetRequest{"k", std::string(500, 'v')}, replies));
  EXPECT_FALSE(engine.Apply(11, SetRequest{"k", std::string(600, 'v')}, replies));
  engine.LimitMemory(100'000);
  EXPECT_TRUE(engine.Apply(11, SetRequest{"k", std::string(600, 'v')}, replies));
}

}  // namespace
}  // namespace rankrun::store

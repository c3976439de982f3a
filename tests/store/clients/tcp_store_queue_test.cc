#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/store/clients/tcp_store_fixture.h"

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using Keys = std::vector<std::string>;

using TcpStoreQueueTest = TcpStoreFixture;

TEST_F(TcpStoreQueueTest, QueuesAreFirstInFirstOut) {
  EXPECT_EQ(*store->TryQueuePop("q"), std::nullopt);
  ASSERT_TRUE(store->QueuePush("q", "one"));
  ASSERT_TRUE(store->QueuePush("q", ""));
  EXPECT_EQ(*store->QueueLength("q"), 2);
  EXPECT_TRUE(*store->Check(Keys{"q"}));
  EXPECT_EQ(*store->TryQueuePop("q"), "one");
  EXPECT_EQ(*store->QueuePop("q", 10s), "");
  EXPECT_EQ(*store->QueueLength("q"), 0);
}

TEST_F(TcpStoreQueueTest, APopThatFindsNothingTimesOut) {
  for (auto timeout : {0ms, 20ms}) {
    auto value = store->QueuePop("q", timeout);
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(value.error().message, HasSubstr("pop from queue q: empty for "));
  }
  ASSERT_TRUE(store->QueuePush("q", "m"));
  EXPECT_EQ(*store->QueuePop("q", 0ms), "m");
}

TEST_F(TcpStoreQueueTest, APopIsNotEndedByAKeyOfTheSameName) {
  ASSERT_TRUE(store->Set("q", "key"));
  auto value = store->QueuePop("q", 60ms);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kTimeout);
}

// Each is woken for one value; whoever finds it gone waits on.
TEST_F(TcpStoreQueueTest, EachValueIsPoppedOnce) {
  constexpr int kThreads = 4;
  constexpr int kEach = 200;
  std::vector<std::vector<std::string>> popped(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : popped) {
    threads.emplace_back([&] {
      auto clone = store->Clone(20s);
      ASSERT_TRUE(clone) << clone.error().message;
      for (int i = 0; i < kEach; ++i) {
        auto value = (*clone)->QueuePop("q", 30s);
        ASSERT_TRUE(value) << value.error().message;
        mine.push_back(*value);
      }
    });
  }
  Keys all;
  for (int i = 0; i < kThreads * kEach; ++i) {
    all.push_back(std::to_string(i));
    ASSERT_TRUE(store->QueuePush("q", all.back()));
  }
  for (std::thread& thread : threads) thread.join();
  Keys together;
  for (auto& mine : popped) together.insert(together.end(), mine.begin(), mine.end());
  EXPECT_THAT(together, testing::UnorderedElementsAreArray(all));
}
}  // namespace
}  // namespace rankrun::store

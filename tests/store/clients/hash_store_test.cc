#include "store/clients/hash_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/base/support.h"

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using testing::HasSubstr;
using testing::Not;

using Keys = std::vector<std::string>;

TEST(HashStore, StartsEmptyAndIndependent) {
  HashStore a;
  HashStore b;
  EXPECT_EQ(*a.NumKeys(), 0);
  ASSERT_TRUE(a.Set("k", "v"));
  EXPECT_FALSE(*b.Check(Keys{"k"}));
  EXPECT_EQ(*a.NumKeys(), 1);  // K-7 without a server's bookkeeping
}

TEST(HashStore, TimeoutsNameOnlyTheKeysThatAreMissing) {
  HashStore store;
  ASSERT_TRUE(store.Set("here", ""));
  EXPECT_EQ(store.Wait(Keys{"here", "gone"}, 1ms).error().message,
            "wait for keys here, gone: key gone not set within 1 ms");
  EXPECT_EQ(store.MultiGet(Keys{"gone", "here", "far"}, 0ms).error().message,
            "get keys gone, here, far: keys gone, far not set within 0 ms");
  EXPECT_EQ(store.Get("gone", 1ms).error().message, "get key gone: not set within 1 ms");
  EXPECT_EQ(store.QueuePop("gone", 1ms).error().message, "pop from queue gone: empty for 1 ms");
}

TEST(HashStore, AddToANonNumberIsInvalid) {
  HashStore store;
  ASSERT_TRUE(store.Set("n", "abc"));
  auto sum = store.Add("n", 1);
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(sum.error().message, "add to key n: its value is not a number");
}

// For the sanitizers: many threads set and delete keys around the time-out of a
// waiter.
TEST(HashStore, TimeoutsAndWakeUpsMayCoincide) {
  HashStore store;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&store] {
      for (int round = 0; round < 300; ++round) {
        auto waited = store.Wait(Keys{"a", "b"}, std::chrono::milliseconds(round % 2));
        EXPECT_TRUE(waited || waited.error().code == ErrorCode::kTimeout);
      }
    });
  }
  threads.emplace_back([&store] {
    for (int round = 0; round < 3000; ++round) {
      EXPECT_TRUE(store.MultiSet(Keys{"a", "b"}, Keys{"", ""}));
      EXPECT_TRUE(*store.Delete("a"));
      EXPECT_TRUE(*store.Delete("b"));
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*store.NumKeys(), 0);
}

}  // namespace
}  // namespace rankrun::store

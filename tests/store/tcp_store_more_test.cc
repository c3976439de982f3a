#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "store/tcp_store.h"
#include "tests/store/fake_server.h"
#include "tests/store/raw_client.h"
#include "tests/store/server_thread.h"

// APPEND, MULTI_GET, MULTI_SET, GETNUMKEYS, LIST_KEYS, queues and Clone.

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

using Keys = std::vector<std::string>;

struct TcpStoreMoreTest : testing::Test {
  TcpStoreMoreTest() {
    auto connected = TcpStore::Connect("127.0.0.1", server.port(), {.connect_timeout = 20s});
    EXPECT_TRUE(connected) << connected.error().message;
    store = std::move(*connected);
  }
  ServerThread server;
  std::unique_ptr<TcpStore> store;
};

TEST_F(TcpStoreMoreTest, AppendMakesOrLengthensAValue) {
  ASSERT_TRUE(store->Append("k", "one"));
  ASSERT_TRUE(store->Append("k", std::string("\0two", 4)));
  EXPECT_EQ(*store->Get("k", 10s), std::string("one\0two", 7));
}

TEST_F(TcpStoreMoreTest, ManyKeysAreSetAndFetchedAtOnce) {
  Keys keys;
  Keys values;
  for (int i = 0; i < 5000; ++i) {
    keys.push_back("key" + std::to_string(i));
    values.push_back(std::string(static_cast<size_t>(i % 100), 'v'));
  }
  ASSERT_TRUE(store->MultiSet(keys, values));
  EXPECT_EQ(*store->MultiGet(keys, 10s), values);
  EXPECT_EQ(*store->NumKeys(), 5000);
  EXPECT_TRUE(store->MultiGet(Keys{}, 10s)->empty());
  EXPECT_TRUE(store->MultiSet(Keys{}, Keys{}));
}

TEST_F(TcpStoreMoreTest, AKeyThatIsThereIsFetchedWithoutAWait) {
  ASSERT_TRUE(store->Set("k", "v"));
  EXPECT_EQ(*store->GetNow("k"), "v");
  EXPECT_EQ(*store->GetNow("missing"), "");
}

TEST_F(TcpStoreMoreTest, OtherPrefixesThanTheSlashShowOtherKeys) {
  auto connect = [this](const std::string& prefix) {
    return *TcpStore::Connect("127.0.0.1", server.port(),
                              {.connect_timeout = 20s, .key_prefix = prefix});
  };
  auto raw = connect("");
  auto prefixed = connect("/p/");
  ASSERT_TRUE(store->Set("p/k", "1"));
  ASSERT_TRUE(raw->Set("init/", "2"));
  EXPECT_EQ(*raw->Get("/p/k", 10s), "1");
  EXPECT_EQ(*prefixed->Get("k", 10s), "1");
  EXPECT_FALSE(*store->Check(Keys{"init/"}));
  EXPECT_THAT(*raw->ListKeys(), UnorderedElementsAre("/p/k", "init/"));
  EXPECT_THAT(*prefixed->ListKeys(), ElementsAre("k"));
  EXPECT_THAT(*(*prefixed->Clone(20s))->ListKeys(), ElementsAre("k"));
}

TEST_F(TcpStoreMoreTest, MultiSetOfUnequalLengthsIsInvalid) {
  auto set = store->MultiSet(Keys{"a", "b"}, Keys{"1"});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(set.error().message, "set keys a, b: 2 keys and 1 value");
  EXPECT_FALSE(*store->Check(Keys{"a"}));
}

TEST_F(TcpStoreMoreTest, MultiGetWaitsForAllKeys) {
  ASSERT_TRUE(store->Set("a", "1"));
  auto got = store->MultiGet(Keys{"a", "b"}, 20ms);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(got.error().message, "get keys a, b: key b not set within 20 ms");
  ASSERT_TRUE(store->Set("b", ""));
  EXPECT_THAT(*store->MultiGet(Keys{"b", "a", "b"}, 10s), ElementsAre("", "1", ""));
}

TEST_F(TcpStoreMoreTest, ListsTheKeysThatAreNotPyTorchsOwn) {
  RawClient raw(Loopback(server.port()));
  raw.Ask(AddRequest{"init/", 1});
  EXPECT_TRUE(raw.Receive(8).size() == 8);
  ASSERT_TRUE(store->Set("a", ""));
  ASSERT_TRUE(store->Set("", ""));
  EXPECT_THAT(*store->ListKeys(), UnorderedElementsAre("a", ""));
  EXPECT_EQ(*store->NumKeys(), 3);
}

TEST_F(TcpStoreMoreTest, QueuesAreFirstInFirstOut) {
  EXPECT_EQ(*store->TryQueuePop("q"), std::nullopt);
  ASSERT_TRUE(store->QueuePush("q", "one"));
  ASSERT_TRUE(store->QueuePush("q", ""));
  EXPECT_EQ(*store->QueueLength("q"), 2);
  EXPECT_TRUE(*store->Check(Keys{"q"}));
  EXPECT_EQ(*store->TryQueuePop("q"), "one");
  EXPECT_EQ(*store->QueuePop("q", 10s), "");
  EXPECT_EQ(*store->QueueLength("q"), 0);
}

TEST_F(TcpStoreMoreTest, APopThatFindsNothingTimesOut) {
  for (auto timeout : {0ms, 20ms}) {
    auto value = store->QueuePop("q", timeout);
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(value.error().message, HasSubstr("pop from queue q: empty for "));
  }
  ASSERT_TRUE(store->QueuePush("q", "m"));
  EXPECT_EQ(*store->QueuePop("q", 0ms), "m");
}

TEST_F(TcpStoreMoreTest, APopIsNotEndedByAKeyOfTheSameName) {
  ASSERT_TRUE(store->Set("q", "key"));
  auto value = store->QueuePop("q", 60ms);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kTimeout);
}

// Each is woken for one value; whoever finds it gone waits on.
TEST_F(TcpStoreMoreTest, EachValueIsPoppedOnce) {
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

TEST_F(TcpStoreMoreTest, ACloneDoesNotWaitForTheOther) {
  auto clone = store->Clone(20s);
  ASSERT_TRUE(clone) << clone.error().message;
  std::thread waiter([this] { EXPECT_TRUE(store->Wait(Keys{"k"}, 20s)); });
  EXPECT_EQ(*(*clone)->Add("n", 1), 1);
  EXPECT_TRUE((*clone)->Set("k", ""));
  waiter.join();
}

TEST_F(TcpStoreMoreTest, ABrokenStoreCanBeCloned) {
  server.OnLoop([](Server& s) { s.Reset(); });
  EXPECT_FALSE(store->Add("n", 1));
  EXPECT_FALSE(store->Add("n", 1));
  auto clone = store->Clone(20s);
  ASSERT_TRUE(clone) << clone.error().message;
  EXPECT_EQ(*(*clone)->Add("n", 1), 1);
}

TEST(TcpStoreMoreFaultsTest, ACloneDoesNotWaitForAServerThatIsGone) {
  auto server = std::make_unique<ServerThread>();
  auto store = TcpStore::Connect("127.0.0.1", server->port(), {.connect_timeout = 20s});
  ASSERT_TRUE(store) << store.error().message;
  server.reset();
  auto clone = (*store)->Clone(1h);
  ASSERT_FALSE(clone);
  EXPECT_EQ(clone.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(clone.error().message, HasSubstr("nobody listens there"));
}

TEST(TcpStoreMoreFaultsTest, AnAbsurdCountOfKeysTakesNoMemory) {
  FakeServer fake([](FakeConnection& c, int) {
    c.Greet();
    c.ReceiveRequest(ListKeysRequest{});
    c.Send(std::string(8, '\x7f') + std::string(8, '\0'));
  });
  auto store = TcpStore::Connect("127.0.0.1", fake.port(), {.connect_timeout = 20s});
  ASSERT_TRUE(store);
  auto keys = (*store)->ListKeys();
  ASSERT_FALSE(keys);
  EXPECT_EQ(keys.error().code, ErrorCode::kPeerLost);
}

}  // namespace
}  // namespace rankrun::store

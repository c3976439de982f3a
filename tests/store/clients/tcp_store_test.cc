#include "store/clients/tcp_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>
#include <limits>
#include <thread>

#include "base/log.h"
#include "tests/store/server/raw_client.h"
#include "tests/store/server/server_thread.h"

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using Keys = std::vector<std::string>;

std::unique_ptr<TcpStore> ConnectTo(const ServerThread& server) {
  auto store = TcpStore::Connect("127.0.0.1", server.port(), {.connect_timeout = 20s});
  EXPECT_TRUE(store) << store.error().message;
  return std::move(*store);
}

struct TcpStoreTest : testing::Test {
  ServerThread server;
  std::unique_ptr<TcpStore> store = ConnectTo(server);
};

TEST_F(TcpStoreTest, CarriesOutEachOperation) {
  ASSERT_TRUE(store->Set("k", "value"));
  EXPECT_EQ(*store->Get("k", 10s), "value");
  EXPECT_EQ(*store->Add("n", 5), 5);
  EXPECT_EQ(*store->Add("n", -7), -2);
  EXPECT_TRUE(*store->Check(Keys{"k", "n"}));
  EXPECT_FALSE(*store->Check(Keys{"k", "z"}));
  EXPECT_TRUE(store->Wait(Keys{"k", "n"}, 10s));
  EXPECT_TRUE(store->Wait(Keys{}, 10s));
  EXPECT_TRUE(*store->Delete("k"));
  EXPECT_FALSE(*store->Delete("k"));
}

TEST_F(TcpStoreTest, CompareSetReportsWhetherTheValueIsTheDesiredOne) {
  auto missing = store->CompareSet("c", "exp", "x");
  EXPECT_EQ(missing->value, "exp");
  EXPECT_FALSE(missing->swapped);
  auto created = store->CompareSet("c", "", "x");
  EXPECT_EQ(created->value, "x");
  EXPECT_TRUE(created->swapped);
  auto different = store->CompareSet("c", "w", "y");
  EXPECT_EQ(different->value, "x");
  EXPECT_FALSE(different->swapped);
}

TEST_F(TcpStoreTest, AddsASlashToKeysAsPyTorchDoes) {
  ASSERT_TRUE(store->Set("k", "value"));
  RawClient raw(Loopback(server.port()));
  raw.Ask(GetRequest{"/k"});
  EXPECT_EQ(raw.ReceiveValue(), "value");
}

TEST_F(TcpStoreTest, CarriesBytesOfAnyKindAndSize) {
  for (size_t size :
       {size_t{0}, size_t{1}, size_t{1} << 20, (size_t{1} << 20) + 1, size_t{5'000'000}}) {
    std::string value(size, '\0');
    for (size_t i = 0; i < size; i += 99) value[i] = static_cast<char>(i);
    ASSERT_TRUE(store->Set("k", value));
    EXPECT_TRUE(*store->Get("k", 10s) == value) << size;
  }
}

TEST_F(TcpStoreTest, WaitNamesTheMissingKeys) {
  auto one = store->Wait(Keys{"a"}, 0ms);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(one.error().message, "wait for key a: not set within 0 ms");
  auto two = store->Wait(Keys{"a", "b"}, 20ms);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().message, "wait for keys a, b: not set within 20 ms");
  auto get = store->Get("a", 20ms);
  ASSERT_FALSE(get);
  EXPECT_EQ(get.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(get.error().message, "get key a: not set within 20 ms");
}

TEST_F(TcpStoreTest, WaitForManyKeysNamesSomeOfTheMissing) {
  for (size_t count : {size_t{64}, size_t{65}, size_t{100}, size_t{5000}}) {
    std::string prefix = std::to_string(count) + "/";
    Keys keys;
    for (size_t i = 0; i < count; ++i) keys.push_back(prefix + std::to_string(i));
    ASSERT_TRUE(store->MultiSet(keys, keys));
    ASSERT_TRUE(store->Wait(keys, 0ms));
    for (size_t missing : {count - 1, count - 2}) ASSERT_TRUE(*store->Delete(keys[missing]));
    std::string at_least = count == 64 ? "" : "at least ";
    EXPECT_THAT(store->Wait(keys, 1ms).error().message,
                HasSubstr(" more: " + at_least + "keys " + keys[count - 2] + ", " + keys.back() +
                          " not set within 1 ms"));
  }
}

TEST_F(TcpStoreTest, WaitForManyKeysThatAreAllMissingNamesTheFirst) {
  Keys keys;
  for (int i = 0; i < 64; ++i) keys.push_back("key" + std::to_string(i));
  EXPECT_EQ(store->Wait(keys, 1ms).error().message,
            "wait for keys key0, key1, key2, key3, key4, key5, key6, key7 and 56 more: "
            "not set within 1 ms");
  for (int i = 64; i < 100; ++i) keys.push_back("key" + std::to_string(i));
  EXPECT_EQ(store->Wait(keys, 1ms).error().message,
            "wait for keys key0, key1, key2, key3, key4, key5, key6, key7 and 92 more: at least "
            "keys key0, key1, key2, key3, key4, key5, key6, key7 and 56 more not set within 1 ms");
}

TEST_F(TcpStoreTest, StaysUsableAfterATimeOut) {
  for (int round = 0; round < 100; ++round) {
    ASSERT_FALSE(store->Wait(Keys{"never", "ever"}, 0ms));
    ASSERT_EQ(*store->Add("n", 1), round + 1);
  }
}

TEST_F(TcpStoreTest, AWaitOfNoTimeFindsKeysThatExist) {
  ASSERT_TRUE(store->Set("k", "v"));
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(store->Wait(Keys{"k"}, 0ms));
    ASSERT_EQ(*store->Get("k", -5ms), "v");
  }
}

TEST_F(TcpStoreTest, TheLongestTimeOutIsNoOverflow) {
  ASSERT_TRUE(store->Set("k", "v"));
  EXPECT_TRUE(store->Wait(Keys{"k"}, std::chrono::milliseconds::max()));
  EXPECT_FALSE(store->Wait(Keys{"z"}, std::chrono::milliseconds::min()));
}

TEST_F(TcpStoreTest, WaitsForAnotherClient) {
  std::thread setter([this] {
    auto other = ConnectTo(server);
    ASSERT_TRUE(other->Wait(Keys{"first"}, 20s));
    ASSERT_TRUE(other->Set("second", "here"));
  });
  ASSERT_TRUE(store->Set("first", ""));
  EXPECT_EQ(*store->Get("second", 20s), "here");
  setter.join();
}

// The keys are set at about the time when the wait gives up. In either order
// the store stays usable.
TEST_F(TcpStoreTest, ATimeOutThatRacesWithTheKeyLosesNoReply) {
  auto other = ConnectTo(server);
  std::atomic<int> turn = -1;
  constexpr int kRounds = 300;
  std::thread setter([&] {
    for (int round = 0; round < kRounds; ++round) {
      while (turn < round) std::this_thread::yield();
      ASSERT_TRUE(other->Set("k" + std::to_string(round), ""));
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    turn = round;
    auto came =
        store->Wait(Keys{"k" + std::to_string(round)}, std::chrono::milliseconds(round % 2));
    if (!came) {
      ASSERT_EQ(came.error().code, ErrorCode::kTimeout) << came.error().message;
    }
    ASSERT_EQ(*store->Add("n", 1), round + 1);
  }
  setter.join();
}

TEST_F(TcpStoreTest, ThreadsMayShareAStore) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < 250; ++round) ASSERT_TRUE(store->Add("n", 1));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*store->Add("n", 0), 1000);
}

TEST_F(TcpStoreTest, SignalsDoNotCutAWaitShort) {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // without SA_RESTART: calls return EINTR
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  std::atomic<bool> over = false;
  std::thread waiter([&] {
    EXPECT_TRUE(store->Wait(Keys{"k"}, 20s));
    over = true;
    while (over) std::this_thread::yield();  // a signal needs a live thread
  });
  for (int i = 0; i < 100; ++i) pthread_kill(waiter.native_handle(), SIGUSR1);
  ASSERT_TRUE(ConnectTo(server)->Set("k", ""));
  while (!over) pthread_kill(waiter.native_handle(), SIGUSR1);
  over = false;
  waiter.join();
}

TEST_F(TcpStoreTest, KnowsItsOwnAddress) {
  EXPECT_EQ(store->local_address().Host(), "127.0.0.1");
  EXPECT_NE(store->local_address().port(), 0);
}

TEST_F(TcpStoreTest, AClosedStoreReportsItFromThenOn) {
  server.OnLoop([](Server& s) { s.Reset(); });
  auto first = store->Add("n", 1);
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(first.error().message, HasSubstr("add to key n: "));
  auto later = store->Get("k", 20s);
  ASSERT_FALSE(later);
  EXPECT_EQ(later.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(later.error().message, HasSubstr("get key k: the connection broke earlier: "));
  EXPECT_FALSE(store->Set("k", ""));
  EXPECT_FALSE(store->Wait(Keys{"k"}, 20s));
  EXPECT_TRUE(ConnectTo(server)->Set("k", ""));
}

TEST_F(TcpStoreTest, AddToTextIsPeerLost) {
  SetLogSink([](std::string_view) {});
  ASSERT_TRUE(store->Set("k", "text"));
  EXPECT_EQ(store->Add("k", 1).error().code, ErrorCode::kPeerLost);
}

TEST_F(TcpStoreTest, AWaitEndsWhenTheServerGoes) {
  std::thread closer([this] {
    EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 1; }));
    server.OnLoop([](Server& s) { s.Reset(); });
  });
  auto came = store->Wait(Keys{"k"}, 20s);
  ASSERT_FALSE(came);
  EXPECT_EQ(came.error().code, ErrorCode::kPeerLost);
  closer.join();
}

TEST_F(TcpStoreTest, FindsTheServerByName) {
  if (!SocketAddress::Resolve("localhost", 0)) GTEST_SKIP() << "localhost has no address here";
  auto by_name = TcpStore::Connect("localhost", server.port(), {.connect_timeout = 20s});
  ASSERT_TRUE(by_name) << by_name.error().message;
  EXPECT_EQ(*(*by_name)->Add("n", 1), 1);
}

// SET has no reply, so the next request may be the first to fail.
TEST(TcpStoreRefusalTest, TheErrorHasTheKeyThatWasRefused) {
  ServerOptions options;
  options.largest_store_bytes = 10'000;
  ServerThread server(options);
  auto store =
      TcpStore::Connect("127.0.0.1", server.port(), {.connect_timeout = std::chrono::seconds(20)});
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->Set("small", "value"));
  Result<void> failed = (*store)->Set("model", std::string(20'000, 'x'));
  if (auto value = (*store)->GetNow("small"); failed && !value) failed = value.error();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(failed.error().message,
              testing::HasSubstr("the store has closed the connection, because it refused SET of "
                                 "key \"model\": the store is full"));
}

}  // namespace
}  // namespace rankrun::store

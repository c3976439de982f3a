// Stores of classes that the program derives.

#include "comm/stores/derived_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/distributed.h>
#include <rankrun/store.h>

#include "base/status/status_page.h"
#include "comm/stores/store_state.h"
#include "comm/world/join_group.h"
#include "tests/base/support.h"
#include "tests/comm/joined.h"
#include "tests/comm/stores/thrown.h"
#include "tests/comm/worlds.h"

namespace rankrun::comm {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::kLong;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

// Store in memory, with the functions that a derived class must have.
class MapStore : public rankrun::Store {
 public:
  explicit MapStore(milliseconds timeout = 300s) : Store(timeout) {}

  void Set(std::string_view key, std::string_view value) override {
    std::lock_guard lock(mutex_);
    values_[std::string(key)] = value;
    changed_.notify_all();
  }
  std::string Get(std::string_view key, Timeout timeout) override {
    Wait({std::string(key)}, timeout);
    std::lock_guard lock(mutex_);
    return values_.at(std::string(key));
  }
  int64_t Add(std::string_view key, int64_t delta) override {
    std::lock_guard lock(mutex_);
    std::string& value = values_[std::string(key)];
    int64_t sum = (value.empty() ? 0 : std::stoll(value)) + delta;
    value = std::to_string(sum);
    changed_.notify_all();
    return sum;
  }
  bool Check(const std::vector<std::string>& keys) override {
    std::lock_guard lock(mutex_);
    return HasAll(keys);
  }
  void Wait(const std::vector<std::string>& keys, Timeout timeout) override {
    std::unique_lock lock(mutex_);
    auto end = std::chrono::steady_clock::now() + timeout.value_or(this->timeout());
    if (!changed_.wait_until(lock, end, [&] { return HasAll(keys); })) {
      throw DistStoreError("a key of the map is missing");
    }
  }
  CompareSetResult CompareSet(std::string_view key, std::string_view expected,
                              std::string_view desired) override {
    std::lock_guard lock(mutex_);
    auto found = values_.find(std::string(key));
    if (found == values_.end() && !expected.empty()) return {std::string(expected), false};
    if (found != values_.end() && found->second != expected) return {found->second, false};
    values_[std::string(key)] = desired;
    changed_.notify_all();
    return {std::string(desired), true};
  }
  bool DeleteKey(std::string_view key) override {
    std::lock_guard lock(mutex_);
    return values_.erase(std::string(key)) > 0;
  }
  int64_t NumKeys() override {
    std::lock_guard lock(mutex_);
    return static_cast<int64_t>(values_.size());
  }

 private:
  bool HasAll(const std::vector<std::string>& keys) const {
    return std::ranges::all_of(keys, [&](const std::string& key) { return values_.contains(key); });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

// Its queue is always empty, and its barrier fails.
class WaitingStore final : public MapStore {
 public:
  std::string QueuePop(std::string_view key, Timeout timeout) override {
    Wait({std::string(key)}, timeout);
    return "";
  }
  void Barrier(std::string_view, int, Timeout) override { throw DistError("out of order"); }
};

// Store that throws `Exception` in Add, which Init calls.
template <typename Exception>
class FailingStore final : public MapStore {
 public:
  int64_t Add(std::string_view, int64_t) override { throw Exception("out of order"); }
};

// Store of each process that asks a server.
class RemoteStore final : public rankrun::Store {
 public:
  explicit RemoteStore(uint16_t port) : port_(port) {}

  void Set(std::string_view key, std::string_view value) override { Client()->Set(key, value); }
  std::string Get(std::string_view key, Timeout timeout) override {
    return Client()->Get(key, timeout);
  }
  int64_t Add(std::string_view key, int64_t delta) override { return Client()->Add(key, delta); }
  bool Check(const std::vector<std::string>& keys) override { return Client()->Check(keys); }
  void Wait(const std::vector<std::string>& keys, Timeout timeout) override {
    Client()->Wait(keys, timeout);
  }
  CompareSetResult CompareSet(std::string_view key, std::string_view expected,
                              std::string_view desired) override {
    return Client()->CompareSet(key, expected, desired);
  }
  bool DeleteKey(std::string_view key) override { return Client()->DeleteKey(key); }
  int64_t NumKeys() override { return Client()->NumKeys(); }

 private:
  // One per call, so that no wait delays another call.
  std::unique_ptr<TcpStore> Client() const {
    return std::make_unique<TcpStore>(TcpStoreOptions{.port = port_});
  }

  const uint16_t port_;
};

TEST(DerivedStoreTest, FunctionsThatItLacksCallThoseThatItHasOrAreErrors) {
  auto map = std::make_shared<MapStore>(kLong);
  rankrun::Store& store = *map;
  EXPECT_EQ(store.timeout(), kLong);
  store.MultiSet({"a", "b"}, {"1", "2"});
  EXPECT_EQ(store.MultiGet({"b", "a"}), (std::vector<std::string>{"2", "1"}));
  std::thread other([&] { store.Barrier("met", 2); });
  store.Barrier("met", 2);
  other.join();
  EXPECT_EQ(ThrownBy([&] { store.Barrier("unmet", 2, 1ms); }).text,
            "meet at barrier unmet: 1 of 2 have come within 1 ms");
  for (const auto& [name, act] : std::map<std::string, std::function<void()>>{
           {"Append", [&] { store.Append("a", "x"); }},
           {"ListKeys", [&] { store.ListKeys(); }},
           {"QueuePush", [&] { store.QueuePush("q", "x"); }},
           {"Clone", [&] { store.Clone(); }}}) {
    Thrown thrown = ThrownBy(act);
    EXPECT_EQ(thrown.kind, "use");
    EXPECT_EQ(thrown.text,
              "this class of Store has no " + name + ": override it in the derived class");
  }
  EXPECT_EQ(ThrownBy([&] { MapStore(-1ms); }).kind, "use");
}

TEST(DerivedStoreTest, OnlyItsClassKnowsWhetherItHasTheExtendedApi) {
  struct Extended final : MapStore {
    bool HasExtendedApi() const override { return true; }
  };
  EXPECT_FALSE(MapStore().HasExtendedApi());
  EXPECT_FALSE(PrefixStore("p", std::make_shared<MapStore>()).HasExtendedApi());
  EXPECT_TRUE(PrefixStore("p", std::make_shared<Extended>()).HasExtendedApi());
  EXPECT_TRUE(PrefixStore("p", std::make_shared<HashStore>()).HasExtendedApi());
  auto clone = PrefixStore("p", std::make_shared<MapStore>()).Clone();
  EXPECT_FALSE(clone->HasExtendedApi());
  EXPECT_FALSE(clone->Clone()->HasExtendedApi());
  EXPECT_TRUE(PrefixStore("p", std::make_shared<Extended>()).Clone()->HasExtendedApi());
}

TEST(DerivedStoreTest, APrefixStoreAndItsClonesAreViewsOfIt) {
  auto map = std::make_shared<MapStore>();
  std::unique_ptr<rankrun::Store> clone;
  {
    PrefixStore view("p", map);
    view.Set("k", "v");
    EXPECT_EQ(view.Add("n", 2), 2);
    EXPECT_FALSE(view.CompareSet("k", "x", "y").swapped);
    EXPECT_EQ(view.MultiGet({"k"}, 0ms)[0], "v");
    clone = view.Clone();
  }
  EXPECT_EQ(map->Get("p/k", 0ms), "v");
  EXPECT_EQ(clone->Get("k"), "v");
  EXPECT_TRUE(clone->DeleteKey("k"));
  EXPECT_EQ(ThrownBy([&] { clone->Get("k", 1ms); }).text, "wait for key p/k: not set within 1 ms");
}

TEST(DerivedStoreTest, ThreadsMeetInItAndReduce) {
  auto map = std::make_shared<MapStore>();
  RunRanks(2, [&](int rank) {
    auto client = StoreState::ClientOf(map, kLong);
    ASSERT_TRUE(client);
    auto group = JoinGroup(*std::move(client), JoinAs(rank, 2, "tcp"));
    ASSERT_TRUE(group) << group.error().message;
    std::vector<int64_t> value{rank + 1};
    auto ok = (*group)->AllReduce(value, ReduceOp::kSum, {});
    EXPECT_TRUE(ok) << ok.error().message;
    EXPECT_EQ(value[0], 3);
  });
}

TEST(DerivedStoreTest, ProcessesMeetInItByInit) {
  auto sums = OnRanks(2, [](int rank) {
    auto port = static_cast<uint16_t>(std::stoi(getenv("MASTER_PORT")));
    ProcessGroup& world =
        Init({.rank = rank, .world_size = 2, .store = std::make_shared<RemoteStore>(port)});
    std::string sum = SumOf(world) + ", " + SumOf(NewGroup({}));
    Destroy();
    return sum;
  });
  EXPECT_THAT(sums, Each("2 of 2, 2 of 2"));
}

TEST(DerivedStoreTest, AMissingRankIsNamed) {
  auto texts = OnRanks(1, [](int) {
    return ErrorOf([] {
      Init({.timeout = 300ms, .rank = 0, .world_size = 2, .store = std::make_shared<MapStore>()});
    });
  });
  EXPECT_THAT(texts, Each(AllOf(HasSubstr("DistTimeoutError: Init: "), HasSubstr("rank 1"))));
}

TEST(DerivedStoreTest, AnyExceptionOfItIsADistErrorOfInit) {
  auto texts = OnRanks(1, [](int) {
    auto init = [](std::shared_ptr<rankrun::Store> store) {
      return ErrorOf([&] { Init({.rank = 0, .world_size = 1, .store = std::move(store)}); }) + "\n";
    };
    return init(std::make_shared<FailingStore<std::runtime_error>>()) +
           init(std::make_shared<FailingStore<DistStoreError>>()) +
           init(std::make_shared<FailingStore<DistNetworkError>>()) +
           init(std::make_shared<FailingStore<DistError>>());
  });
  EXPECT_THAT(texts[0], testing::MatchesRegex("DistStoreError: Init: .*out of order\n"
                                              "DistStoreError: Init: .*out of order\n"
                                              "DistNetworkError: Init: .*out of order\n"
                                              "DistError: Init: .*out of order\n"));
}

TEST(DerivedStoreTest, ADeathEndsItsWaits) {
  StatusPage page = *StatusPage::Create();
  DerivedStore store(std::make_shared<MapStore>(), DeathWatch(page));
  ASSERT_TRUE(store.Set("k", "v"));
  std::thread agent([&] { page.PublishPeerDeath("rank 1 was killed by SIGKILL"); });
  auto waited = store.Get("z", std::chrono::hours(1));
  agent.join();
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(waited.error().message, HasSubstr("wait for key z: rank 1 was killed by SIGKILL"));
  EXPECT_TRUE(store.Get("k", std::chrono::hours(1))) << "a key that exists";
}

TEST(DerivedStoreTest, ADeathEndsItsQueuePopAndItsBarrier) {
  StatusPage page = *StatusPage::Create();
  DerivedStore store(std::make_shared<WaitingStore>(), DeathWatch(page));
  auto popped = store.QueuePop("q", 1ms);
  ASSERT_FALSE(popped);
  EXPECT_EQ(popped.error().message, "pop from queue q: empty for 1 ms");
  std::thread agent([&] { page.PublishPeerDeath("rank 1 was killed by SIGKILL"); });
  popped = store.QueuePop("q", std::chrono::hours(1));
  auto met = store.Barrier("b", 2, std::chrono::hours(1));
  agent.join();
  ASSERT_FALSE(popped);
  EXPECT_EQ(popped.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(popped.error().message, HasSubstr("pop from queue q: rank 1 was killed by SIGKILL"));
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(met.error().message, HasSubstr("rank 1 was killed by SIGKILL"));
}

}  // namespace
}  // namespace rankrun::comm

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/store/server/hostile_clients.h"
#include "tests/store/server/raw_client.h"
#include "tests/store/server/server_process.h"
#include "tests/store/server/server_thread.h"

// While other clients misbehave, a well-behaved client is answered and the
// server's memory stays within its limits.

namespace rankrun::store {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

#ifdef RANKRUN_SANITIZED
constexpr bool kMemoryIsOurs = false;  // a sanitizer needs several times as much
#else
constexpr bool kMemoryIsOurs = true;
#endif

constexpr size_t kMiB = size_t{1} << 20;

// A well-behaved client that measures its waiting time.
class GoodClient {
 public:
  explicit GoodClient(const SocketAddress& server) : client_(server) {
    client_.Ask(SetRequest{"/good", "value"});
    AskAll();
  }

  // Sends requests while `busy` holds, at least once.
  void AskWhile(const std::function<bool()>& busy) {
    do {
      AskAll();
    } while (busy() && !testing::Test::HasFailure());
  }

  Duration longest() const { return longest_; }
  Duration mean() const { return total_ / answers_; }

 private:
  void AskAll() {
    Ask(GetRequest{"/good"}, ValueReply{"value"});
    Ask(CheckRequest{{"/good", "/none"}}, CheckReply::kNotReady);
    Ask(CompareSetRequest{"/good", "value", "value"}, ValueReply{"value"});
    Ask(PingRequest{7}, PingReply{7});
  }
  void Ask(const Request& request, const Reply& reply) {
    std::string expected = Encoded(reply);
    TimePoint asked = MonotonicClock().Now();
    client_.Ask(request);
    EXPECT_EQ(client_.Receive(expected.size()), expected);
    Duration took = MonotonicClock().Now() - asked;
    longest_ = std::max(longest_, took);
    total_ += took;
    answers_ += 1;
  }

  RawClient client_;
  Duration longest_{};
  Duration total_{};
  int answers_ = 0;
};

void ExpectPrompt(const GoodClient& good) {
  testing::Test::RecordProperty("longest_answer_us",
                                std::to_string(good.longest() / microseconds(1)));
  // A single request may be late on a loaded machine, but not the mean.
  EXPECT_LT(good.longest(), seconds(5));
  EXPECT_LT(good.mean(), milliseconds(100));
}

// Runs each of `tasks` in its own thread, while `good` sends requests.
void AskDuring(GoodClient& good, const std::vector<std::function<void()>>& tasks) {
  std::atomic<size_t> running = tasks.size();
  std::vector<std::thread> threads;
  for (const auto& task : tasks) {
    threads.emplace_back([&] {
      task();
      running -= 1;
    });
  }
  good.AskWhile([&] { return running > 0; });
  for (std::thread& thread : threads) thread.join();
}

ServerOptions SmallLimits() {
  ServerOptions options;
  options.largest_store_bytes = 24 * kMiB;
  options.largest_traffic_bytes = 24 * kMiB;
  return options;
}

// A client that requests 1 GB of replies and reads none of it.
std::unique_ptr<RawClient> AskWithoutReading(const SocketAddress& server) {
  auto client = std::make_unique<RawClient>(server);
  client->Ask(SetRequest{"/large", std::string(kMiB, 'l')});
  std::string requests;
  for (int i = 0; i < 1000; ++i) requests += EncodeRequest(GetRequest{"/large"});
  client->Send(requests);
  return client;
}

// Compares the server's memory since `base_bytes` with its limits. Memory that
// malloc cannot reuse comes on top, and also the spare room of growing strings,
// which is at most their size.
void ExpectMemoryWithinLimits(const ServerProcess& server, size_t base_bytes, size_t connections) {
  ServerOptions options = SmallLimits();
  size_t grown = server.PeakBytes() - base_bytes;
  size_t limit = options.largest_store_bytes + 2 * options.largest_traffic_bytes +
                 connections * 2048 + 16 * kMiB;
  testing::Test::RecordProperty("grown_kib", std::to_string(grown / 1024));
  EXPECT_GT(base_bytes, 0u);
  if (kMemoryIsOurs) {
    EXPECT_LE(grown, limit);
  }
}

TEST(ServerHostileTimingTest, HostileClientsDelayNobodyAndTakeNoMemory) {
  if (!MayHaveDescriptors(2000)) GTEST_SKIP() << "fewer than 2000 descriptors are allowed";
  ServerProcess server(SmallLimits());
  SocketAddress address = server.address();
  GoodClient good(address);
  size_t base_bytes = server.PeakBytes();
  std::vector<std::unique_ptr<RawClient>> unread;
  for (int i = 0; i < 4; ++i) unread.push_back(AskWithoutReading(address));
  auto many_ways = [&] {
    AnnounceHugeLengths(address, 10);
    FillUp(address, SmallLimits().largest_store_bytes);
    ComeAndGo(address, 1000);
  };
  AskDuring(good, {
                      [&] { SendSlowly(address, 500, 60'000, 10); },
                      [&] { SendGarbage(address, /*seed=*/1, 1000); },
                      many_ways,
                  });
  ExpectPrompt(good);
  ExpectMemoryWithinLimits(server, base_bytes, 600);
}

TEST(ServerHostileTimingTest, FiveHundredSlowClientsDelayNobody) {
  if (!MayHaveDescriptors(2000)) GTEST_SKIP() << "fewer than 2000 descriptors are allowed";
  ServerProcess server(SmallLimits());
  GoodClient good(server.address());
  size_t base_bytes = server.PeakBytes();
  AskDuring(good, {[&] { SendSlowly(server.address(), 500, /*begun_bytes=*/0, 100); }});
  ExpectPrompt(good);
  ExpectMemoryWithinLimits(server, base_bytes, 500);
}

TEST(ServerHostileTimingTest, ASlowReaderGetsAllItsReplies) {
  ServerProcess server(SmallLimits());
  GoodClient good(server.address());
  size_t base_bytes = server.PeakBytes();
  auto late = AskWithoutReading(server.address());
  auto read_all = [&] {
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(late->ReceiveValue().size(), kMiB) << i;
    EXPECT_TRUE(late->IsServed());
  };
  AskDuring(good, {read_all});
  ExpectPrompt(good);
  ExpectMemoryWithinLimits(server, base_bytes, 2);
}

TEST(ServerHostileTimingTest, FourThousandWaitersAreReleasedInOnePass) {
  constexpr size_t kWaiters = 4000;
  if (!MayHaveDescriptors(10'000)) GTEST_SKIP() << "fewer than 10000 descriptors are allowed";
  ServerProcess server(ServerOptions{});
  GoodClient good(server.address());
  std::vector<std::unique_ptr<RawClient>> waiters;
  for (size_t i = 0; i < kWaiters; ++i) {
    waiters.push_back(std::make_unique<RawClient>(server.address()));
    waiters.back()->Send(EncodeRequest(WaitRequest{{"/go"}}) + EncodeRequest(PingRequest{1}));
  }
  for (auto& waiter : waiters) ASSERT_EQ(waiter->Receive(4), Encoded(PingReply{1}));
  RawClient starter(server.address());
  auto release = [&] {
    starter.Ask(SetRequest{"/go", ""});
    for (auto& waiter : waiters) {
      ASSERT_EQ(waiter->Receive(1), Encoded(WaitReply::kStopWaiting));
    }
  };
  AskDuring(good, {release});
  ExpectPrompt(good);
  for (auto& waiter : waiters) ASSERT_TRUE(waiter->IsServed());  // and there is no second reply
}

constexpr size_t kManyKeys = 100'000;

std::string ManyKey(size_t i) { return "/many" + std::to_string(i); }

std::string AWaitForEachKey() {
  std::string requests;
  for (size_t i = 0; i < kManyKeys; ++i) requests += EncodeRequest(WaitRequest{{ManyKey(i)}});
  return requests;
}

bool HoldsNothing(Server& server) { return server.Stats().bytes == 0; }

TEST(ServerHostileTest, AHundredThousandWaitsAreCancelledAtOnce) {
  ServerThread server;
  RawClient client(Loopback(server.port()));
  client.Send(AWaitForEachKey());
  EXPECT_TRUE(client.IsServed());
  server.OnLoop([](Server& s) {
    EXPECT_EQ(s.Stats().waiters, kManyKeys);
    EXPECT_GT(s.Stats().bytes, kManyKeys * ManyKey(0).size());
  });
  client.Ask(CancelWaitRequest{});
  EXPECT_EQ(client.Receive(1), Encoded(WaitReply::kWaitCanceled));
  server.OnLoop([](Server& s) { EXPECT_TRUE(HoldsNothing(s)); });
}

TEST(ServerHostileTest, AHundredThousandWaitsEndWithTheirClient) {
  ServerThread server;
  auto client = std::make_unique<RawClient>(Loopback(server.port()));
  client->Send(AWaitForEachKey());
  EXPECT_TRUE(client->IsServed());
  server.OnLoop([](Server& s) { EXPECT_FALSE(HoldsNothing(s)); });
  client.reset();
  EXPECT_TRUE(server.Eventually([](Server& s) { return s.connection_count() == 0; }));
  server.OnLoop([](Server& s) { EXPECT_TRUE(HoldsNothing(s)); });
}

// The cost of each answer is proportional to all waits.
TEST(ServerHostileTimingTest, AClientThatRequestsStatsInALoopDelaysNobody) {
  constexpr size_t kQuestions = 30;
  ServerThread server;
  GoodClient good(Loopback(server.port()));
  RawClient curious(Loopback(server.port()));
  curious.Send(AWaitForEachKey());
  EXPECT_TRUE(curious.IsServed());
  std::string requests;
  for (size_t i = 0; i < kQuestions; ++i) {
    requests += EncodeRequest(GetRequest{std::string(kStatsKey)});
  }
  auto ask = [&] {
    curious.Send(requests);
    for (size_t i = 0; i < kQuestions; ++i) ASSERT_FALSE(curious.ReceiveValue().empty());
  };
  AskDuring(good, {ask});
  ExpectPrompt(good);
}

TEST(ServerHostileTest, OneWaitForAHundredThousandKeysEndsWithTheLast) {
  ServerThread server;
  RawClient waiter(Loopback(server.port()));
  RawClient other(Loopback(server.port()));
  WaitRequest wait;
  MultiSetRequest set;
  std::string drop;
  for (size_t i = 0; i < kManyKeys; ++i) {
    wait.keys.push_back(ManyKey(i));
    set.entries.emplace_back(ManyKey(i), "");
    drop += EncodeRequest(DeleteKeyRequest{ManyKey(i)});
  }
  std::string last = set.entries.back().first;
  set.entries.pop_back();
  waiter.Ask(wait);
  EXPECT_TRUE(waiter.IsServed());
  other.Ask(set);
  EXPECT_TRUE(other.IsServed());
  EXPECT_TRUE(waiter.IsServed());
  other.Ask(SetRequest{last, ""});
  EXPECT_EQ(waiter.Receive(1), Encoded(WaitReply::kStopWaiting));
  other.Send(drop);
  EXPECT_EQ(other.Receive(kManyKeys * 8).size(), kManyKeys * 8);
  server.OnLoop([](Server& s) { EXPECT_TRUE(HoldsNothing(s)); });
}

}  // namespace
}  // namespace rankrun::store

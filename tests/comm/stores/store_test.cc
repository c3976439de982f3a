// The public stores, as a program uses them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <thread>

#include <rankrun/store.h>

#include "base/log.h"
#include "tests/base/support.h"
#include "tests/comm/stores/thrown.h"
#include "tests/store/clients/fake_server.h"

namespace rankrun {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::kLong;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

TcpStoreOptions Server() { return {.port = 0, .is_server = true, .timeout = kLong}; }
TcpStoreOptions ClientOf(const TcpStore& server) {
  return {.port = server.port(), .timeout = kLong};
}

struct Kind {
  std::string name;
  std::function<std::shared_ptr<Store>(const test::TempFolder&)> make;
};

struct PublicStoreTest : testing::TestWithParam<Kind> {
  test::TempFolder folder;
  std::shared_ptr<Store> store = GetParam().make(folder);
};

TEST_P(PublicStoreTest, EveryOperationDoesWhatItSays) {
  store->Set("k", "value");
  EXPECT_EQ(store->Get("k"), "value");
  EXPECT_EQ(store->Add("n", 5), 5);
  EXPECT_EQ(store->Add("n", -7), -2);
  EXPECT_TRUE(store->Check({"k", "n"}));
  EXPECT_FALSE(store->Check({"k", "z"}));
  store->Wait({"k", "n"});
  store->Wait({}, 0ms);
  CompareSetResult swapped = store->CompareSet("k", "value", "other");
  EXPECT_EQ(swapped.value, "other");
  EXPECT_TRUE(swapped.swapped);
  CompareSetResult kept = store->CompareSet("k", "value", "third");
  EXPECT_EQ(kept.value, "other");
  EXPECT_FALSE(kept.swapped);
  store->Append("k", "s");
  store->MultiSet({"a", "b"}, {"1", std::string("\0two", 4)});
  EXPECT_THAT(store->MultiGet({"b", "k"}), ElementsAre(std::string("\0two", 4), "others"));
  EXPECT_EQ(store->NumKeys(), 4);
  EXPECT_THAT(store->ListKeys(), UnorderedElementsAre("a", "b", "k", "n"));
  EXPECT_TRUE(store->DeleteKey("a"));
  EXPECT_FALSE(store->DeleteKey("a"));
}

// The examples of torch.distributed's documentation, and their edges.
TEST_P(PublicStoreTest, VectorsK1ToK7) {
  EXPECT_EQ(store->Add("first", 1), 1);
  EXPECT_EQ(store->Add("first", 6), 7);
  EXPECT_EQ(store->Get("first"), "7");
  EXPECT_TRUE(store->Check({"first"}));
  EXPECT_EQ(store->Add("first", 0), 7);
  store->Append("second", "po");
  store->Append("second", "tato");
  EXPECT_EQ(store->Get("second"), "potato");
  store->Set("third", "first_value");
  EXPECT_EQ(store->CompareSet("third", "first_value", "second_value").value, "second_value");
  EXPECT_EQ(store->Get("third"), "second_value");
  EXPECT_TRUE(store->DeleteKey("third"));
  EXPECT_FALSE(store->DeleteKey("bad_key"));
  EXPECT_EQ(store->CompareSet("third", "x", "y").value, "x");
  EXPECT_FALSE(store->Check({"third"})) << "nothing was there to be swapped";
  EXPECT_TRUE(store->CompareSet("third", "", "y").swapped);
  store->MultiSet({"fourth", "fifth"}, {"po", "tato"});
  EXPECT_THAT(store->MultiGet({"fourth", "fifth"}), ElementsAre("po", "tato"));
  EXPECT_EQ(store->Get("fourth"), "po");
  EXPECT_EQ(store->NumKeys(), 5) << "and none of the store's own";
}

TEST_P(PublicStoreTest, QueuesAreFirstInFirstOut) {
  EXPECT_EQ(store->TryQueuePop("q"), std::nullopt);
  store->QueuePush("q", "one");
  store->QueuePush("q", "two");
  EXPECT_EQ(store->QueueLength("q"), 2);
  EXPECT_EQ(store->QueuePop("q"), "one");
  EXPECT_EQ(store->TryQueuePop("q"), "two");
  Thrown empty = ThrownBy([&] { store->QueuePop("q", 2ms); });
  EXPECT_EQ(empty.kind, "store");
  EXPECT_THAT(empty.text, HasSubstr("q: empty for 2 ms"));
}

TEST_P(PublicStoreTest, ABarrierMeetsAsManyAsItSays) {
  std::shared_ptr<Store> clone = store->Clone();
  std::thread other([&] { clone->Barrier("b", 2); });
  store->Barrier("b", 2);
  other.join();
  Thrown late = ThrownBy([&] { store->Barrier("late", 2, 3ms); });
  EXPECT_EQ(late.kind, "store");
  EXPECT_THAT(late.text, HasSubstr("late: 1 of 2 have come within 3 ms"));
  Thrown empty = ThrownBy([&] { store->Barrier("none", 0); });
  EXPECT_EQ(empty.kind, "use");
  EXPECT_THAT(empty.text, HasSubstr("none: world_size is 0: want at least 1"));
}

TEST_P(PublicStoreTest, AWaitThatTimesOutIsAStoreErrorThatNamesTheMissingKeys) {
  store->Set("there", "");
  Thrown wait = ThrownBy([&] { store->Wait({"there", "absent"}, 3ms); });
  EXPECT_EQ(wait.kind, "store");
  EXPECT_THAT(wait.text, AllOf(HasSubstr("wait for keys "), HasSubstr(": key "),
                               HasSubstr("absent not set within 3 ms")));
  EXPECT_EQ(ThrownBy([&] { store->Get("absent", 0ms); }).kind, "store");
  EXPECT_EQ(ThrownBy([&] { store->MultiGet({"absent"}, 0ms); }).kind, "store");
}

TEST_P(PublicStoreTest, TheTimeOutOfTheObjectIsThatOfCallsWithoutTheirOwn) {
  EXPECT_EQ(store->timeout(), kLong);
  store->SetTimeout(5ms);
  EXPECT_EQ(store->timeout(), 5ms);
  EXPECT_THAT(ThrownBy([&] { store->Get("absent"); }).text, HasSubstr("within 5 ms"));
  store->SetTimeout(2 * kLong);
  EXPECT_EQ(store->Clone()->timeout(), 2 * kLong);
}

TEST_P(PublicStoreTest, WrongUseIsADistErrorAndTheStoreWorksOn) {
  Thrown uneven = ThrownBy([&] { store->MultiSet({"a", "b"}, {"1"}); });
  EXPECT_EQ(uneven.kind, "use");
  EXPECT_THAT(uneven.text, HasSubstr(": 2 keys and 1 value"));
  Thrown negative = ThrownBy([&] { store->Get("a", -5ms); });
  EXPECT_EQ(negative.kind, "use");
  EXPECT_EQ(negative.text, "the time-out of a store is -5 ms: want at least 0 ms");
  EXPECT_EQ(ThrownBy([&] { store->SetTimeout(-1ms); }).kind, "use");
  EXPECT_EQ(store->timeout(), kLong);
  EXPECT_FALSE(store->Check({"a"}));
}

TEST_P(PublicStoreTest, ACloneSharesTheDataAndDoesNotWaitForUs) {
  std::unique_ptr<Store> clone = store->Clone();
  std::thread waiter([&] { EXPECT_EQ(store->Get("k"), "v"); });
  clone->Set("k", "v");
  waiter.join();
  EXPECT_EQ(clone->Clone()->Get("k"), "v");
}

std::vector<Kind> Kinds() {
  auto file = [](const test::TempFolder& folder) {
    return std::make_shared<FileStore>(folder.Path("store"), "run", kLong);
  };
  return {
      {"TcpStore", [](const auto&) { return std::make_shared<TcpStore>(Server()); }},
      {"FileStore", file},
      {"HashStore", [](const auto&) { return std::make_shared<HashStore>(kLong); }},
      {"PrefixStore",
       [=](const auto& folder) { return std::make_shared<PrefixStore>("p", file(folder)); }},
  };
}
INSTANTIATE_TEST_SUITE_P(All, PublicStoreTest, testing::ValuesIn(Kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST(PublicTcpStoreTest, TheServerIsReachedByOthersAtItsPort) {
  TcpStore server(Server());
  EXPECT_NE(server.port(), 0);
  EXPECT_EQ(server.host(), "127.0.0.1");
  EXPECT_TRUE(server.is_server());
  TcpStore client(ClientOf(server));
  EXPECT_FALSE(client.is_server());
  EXPECT_EQ(client.port(), server.port());
  client.Set("k", "v");
  EXPECT_EQ(server.Get("k"), "v");
}

TEST(PublicTcpStoreTest, AServerForAnotherHostListensOnAllAddresses) {
  // The host is not this machine, so that only loopback reaches the server.
  TcpStore server({.host = "192.0.2.1", .port = 0, .is_server = true, .timeout = kLong});
  for (const char* host : {"127.0.0.1", "127.0.0.2"}) {
    TcpStore client({.host = host, .port = server.port(), .timeout = kLong});
    client.Set("from", host);
    EXPECT_EQ(server.Get("from"), host);
  }
}

TEST(PublicTcpStoreTest, AServerForLoopbackListensThereOnly) {
  TcpStore server(Server());
  TcpStoreOptions elsewhere{.host = "127.0.0.2", .port = server.port(), .timeout = 2s};
  Thrown thrown = ThrownBy([&] { TcpStore client(elsewhere); });
  EXPECT_EQ(thrown.kind, "network");
  EXPECT_THAT(thrown.text, HasSubstr("nobody listens there"));
}

TEST(PublicTcpStoreTest, NothingOutlivesTheServer) {
  auto threads = [] { return test::ThreadsNamed("rankrun-store").size(); };
  TcpStoreOptions options = Server();
  {
    TcpStore server(options);
    EXPECT_TRUE(test::WaitFor([&] { return threads() == 1; }));
    options.port = server.port();
  }
  // The kernel removes a thread from /proc a moment after its join.
  EXPECT_TRUE(test::WaitFor([&] { return threads() == 0; }));
  TcpStore again(options);
  EXPECT_FALSE(again.Check({"k"}));
}

TEST(PublicTcpStoreTest, TheServerWaitsForAllWorkers) {
  // Reserves the port: only a bind to this very number gets it.
  Fd reserved = store::BoundSocket();
  int on = 1;
  ASSERT_EQ(setsockopt(reserved.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  uint16_t port = SocketAddress::LocalOf(reserved.get())->port();
  std::atomic<int> ready = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      TcpStore client({.port = port, .world_size = 3, .timeout = kLong});
      ++ready;
      client.Wait({"over"});
    });
  }
  TcpStore server({.port = port, .is_server = true, .world_size = 3, .timeout = kLong});
  EXPECT_EQ(server.NumKeys(), 1);  // the count of workers
  EXPECT_TRUE(server.ListKeys().empty());
  EXPECT_TRUE(test::WaitFor([&] { return ready == 2; }));
  server.Set("over", "");
  for (std::thread& client : clients) client.join();
}

TEST(PublicTcpStoreTest, WorkersThatDoNotComeAreAStoreError) {
  TcpStoreOptions options = Server();
  options.world_size = 3;
  options.timeout = 2s;
  Thrown thrown = ThrownBy([&] { TcpStore server(options); });
  EXPECT_EQ(thrown.kind, "store");
  EXPECT_EQ(thrown.text, "wait for workers: 1 of 3 have connected within 2000 ms");
  options.wait_for_workers = false;
  TcpStore server(options);
  EXPECT_EQ(server.NumKeys(), 0);
}

TEST(PublicTcpStoreTest, AServerThatIsLostIsANetworkError) {
  auto server = std::make_unique<TcpStore>(Server());
  TcpStore client(ClientOf(*server));
  std::thread waiter([&] { EXPECT_EQ(ThrownBy([&] { client.Get("k"); }).kind, "network"); });
  server->Wait({});
  server.reset();
  waiter.join();
  EXPECT_EQ(ThrownBy([&] { client.Add("n", 1); }).kind, "network");
  TimePoint start = MonotonicClock().Now();
  client.SetTimeout(50ms);
  Thrown clone = ThrownBy([&] { client.Clone(); });
  EXPECT_EQ(clone.kind, "network");
  EXPECT_THAT(clone.text, HasSubstr("nobody listens there"));
  EXPECT_LT(MonotonicClock().Now() - start, kLong / 2);
}

TEST(PublicTcpStoreTest, AServerThatIsNotThereIsANetworkErrorThatSaysWhy) {
  Fd bound = store::BoundSocket();
  uint16_t port = SocketAddress::LocalOf(bound.get())->port();
  Thrown refused = ThrownBy([&] { TcpStore client({.port = port, .timeout = 50ms}); });
  EXPECT_EQ(refused.kind, "network");
  EXPECT_THAT(refused.text, HasSubstr("Connection refused: nobody listens there"));
  const store::FullListener full;
  Thrown silent = ThrownBy([&] { TcpStore client({.port = full.port(), .timeout = 50ms}); });
  EXPECT_EQ(silent.kind, "network");
  Thrown unknown = ThrownBy(
      [&] { TcpStore client({.host = std::string(70, 'x'), .port = port, .timeout = 1ms}); });
  EXPECT_EQ(unknown.kind, "network");
  EXPECT_THAT(unknown.text, HasSubstr("look up xxx"));
}

TEST(PublicTcpStoreTest, APortThatIsTakenIsAStoreError) {
  TcpStore server(Server());
  TcpStoreOptions second = Server();
  second.port = server.port();
  Thrown thrown = ThrownBy([&] { TcpStore other(second); });
  EXPECT_EQ(thrown.kind, "store");
  EXPECT_THAT(thrown.text, HasSubstr("listen on 127.0.0.1:"));
}

TEST(PublicTcpStoreTest, BadOptionsAreDistErrorsThatSayWhatWouldBeRight) {
  std::vector<std::pair<TcpStoreOptions, std::string>> wrong = {
      {{.host = ""}, "TcpStore: host is empty: want the server's name or address"},
      {{.port = 0}, "TcpStore: port is 0: want the server's port, since this is not the server"},
      {{.world_size = 0}, "TcpStore: world_size is 0: want at least 1"},
      {{.timeout = -1ms}, "the time-out of a store is -1 ms: want at least 0 ms"},
  };
  for (const auto& [options, text] : wrong) {
    Thrown thrown = ThrownBy([&options = options] { TcpStore store(options); });
    EXPECT_EQ(thrown.kind, "use");
    EXPECT_EQ(thrown.text, text);
  }
}

TEST(PublicTcpStoreTest, AddToTextIsANetworkErrorAndACloneWorksOn) {
  SetLogSink([](std::string_view) {});
  TcpStore store(Server());
  store.Set("k", "text");
  EXPECT_EQ(ThrownBy([&] { store.Add("k", 1); }).kind, "network");
  EXPECT_EQ(store.Clone()->Get("k"), "text");
}

// The child inherits the object but not the thread of the server.
TEST(PublicTcpStoreTest, AForkedChildMayDropItsCopyOfTheServer) {
  auto server = std::make_unique<TcpStore>(Server());
  pid_t child = test::Fork([&] {
    server.reset();
    return 0;
  });
  EXPECT_EQ(test::WaitForExit(child), (ProcessExit{false, 0}));
  TcpStore client(ClientOf(*server));
  client.Set("k", "v");
  EXPECT_EQ(server->Get("k"), "v");
}

TEST(PublicFileStoreTest, TheFileOfAnotherRunIsADistError) {
  test::TempFolder folder;
  FileStore store(folder.Path("store"), "one");
  EXPECT_EQ(store.path(), folder.Path("store"));
  EXPECT_EQ(store.timeout(), 300s);
  EXPECT_EQ(ThrownBy([&] { FileStore other(folder.Path("store"), "two"); }).kind, "use");
  EXPECT_EQ(ThrownBy([&] { FileStore other(folder.Path("no/store"), "one"); }).kind, "store");
}

TEST(PublicFileStoreTest, AddToTextIsADistError) {
  test::TempFolder folder;
  FileStore store(folder.Path("store"), "run");
  store.Set("k", "text");
  EXPECT_EQ(ThrownBy([&] { store.Add("k", 1); }).kind, "use");
  EXPECT_EQ(store.Get("k"), "text");
}

TEST(PublicFileStoreTest, AFileThatIsRemovedIsANetworkError) {
  test::TempFolder folder;
  FileStore store(folder.Path("store"), "run");
  std::filesystem::remove(folder.Path("store"));
  EXPECT_EQ(ThrownBy([&] { store.Set("k", ""); }).kind, "network");
}

TEST(PublicPrefixStoreTest, ItIsAViewThatHoldsTheStoreUnderIt) {
  auto inner = std::make_shared<HashStore>();
  PrefixStore outer("a", std::make_shared<PrefixStore>("b", inner));
  outer.Set("k", "v");
  EXPECT_EQ(inner->Get("b/a/k"), "v");
  EXPECT_EQ(outer.prefix(), "a");
  std::weak_ptr<Store> watched = inner;
  inner.reset();
  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(outer.underlying_store()->ListKeys(), std::vector<std::string>{"a/k"});
}

TEST(PublicPrefixStoreTest, ItsTimeOutIsItsOwn) {
  auto inner = std::make_shared<HashStore>(50ms);
  PrefixStore view("p", inner);
  EXPECT_EQ(view.timeout(), 50ms);
  view.SetTimeout(1ms);
  EXPECT_EQ(inner->timeout(), 50ms);
  EXPECT_EQ(ThrownBy([&] { PrefixStore none("p", nullptr); }).text,
            "PrefixStore \"p\": there is no store under it");
}

}  // namespace
}  // namespace rankrun

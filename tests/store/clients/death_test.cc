#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "store/clients/describe.h"
#include "store/clients/file_lock.h"
#include "store/clients/file_store.h"
#include "store/clients/hash_store.h"
#include "store/clients/tcp_store.h"
#include "tests/base/support.h"
#include "tests/store/clients/fake_server.h"
#include "tests/store/server/server_thread.h"

// End of waits when the agent reports the death of a worker.
namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Keys = std::vector<std::string>;

constexpr const char* kDeathMessage = "rank 1 was killed by SIGKILL";
constexpr auto kForever = 3'600'000ms;

struct DeathTest : testing::Test {
  TcpStoreOptions TcpOptions() const { return {.connect_timeout = kForever, .deaths = watch}; }

  StatusPage page = *StatusPage::Create();
  DeathWatch watch{page};
};

struct StoreDeathTest : DeathTest, testing::WithParamInterface<const char*> {
  std::unique_ptr<Store> Open() {
    if (GetParam() == std::string("Hash")) return std::make_unique<HashStore>(watch);
    if (GetParam() == std::string("File")) {
      return *FileStore::Open(folder.Path("store"), "run", {.deaths = watch});
    }
    return *TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  }

  ServerThread server;
  test::TempFolder folder;
  std::unique_ptr<Store> store = Open();
};

template <typename T>
void ExpectDeath(const Result<T>& result, const std::string& what) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(result.error().message, StartsWith(what + ": " + kDeathMessage + "; waited "));
}

TEST_P(StoreDeathTest, EndsAWaitOfEachKind) {
  ASSERT_TRUE(store->Set("a", "1"));
  std::thread agent([&] { page.PublishPeerDeath(kDeathMessage); });
  ExpectDeath(store->Wait(Keys{"a", "b"}, kForever), "wait for keys a, b");
  ExpectDeath(store->Get("b", kForever), "get key b");
  ExpectDeath(store->MultiGet(Keys{"a", "b"}, kForever), "get keys a, b");
  ExpectDeath(store->QueuePop("q", kForever), "pop from queue q");
  std::string barrier = "meet at barrier b";
  if (GetParam() != std::string("Tcp")) barrier += ": wait for key b/last_member";
  ExpectDeath(store->Barrier("b", 2, kForever), barrier);
  agent.join();
}

TEST_P(StoreDeathTest, EndsTheWaitsOfManyClones) {
  std::vector<std::thread> waiting;
  for (int i = 0; i < 8; ++i) {
    auto clone = store->Clone(kForever);
    ASSERT_TRUE(clone);
    waiting.emplace_back([clone = std::move(*clone)] {
      ExpectDeath(clone->Wait(Keys{"a"}, kForever), "wait for key a");
    });
  }
  page.PublishPeerDeath(kDeathMessage);
  for (std::thread& thread : waiting) thread.join();
}

TEST_P(StoreDeathTest, KeepsExistingKeysReadable) {
  page.PublishPeerDeath(kDeathMessage);
  ExpectDeath(store->Get("a", kForever), "get key a");
  ASSERT_TRUE(store->Set("a", "1"));
  EXPECT_EQ(*store->Get("a", kForever), "1");
  EXPECT_TRUE(store->Wait(Keys{"a"}, 0ms));
  EXPECT_EQ(*store->Add("n", 3), 3);
  ASSERT_TRUE(store->QueuePush("q", "x"));
  EXPECT_EQ(*store->QueuePop("q", kForever), "x");
  EXPECT_TRUE(store->Barrier("b", 1, kForever));
  EXPECT_TRUE(store->Clone(kForever));
}

TEST_P(StoreDeathTest, IsIgnoredWithoutADeathWatch) {
  TcpStoreOptions options{.connect_timeout = kForever};
  auto outside = TcpStore::Connect("127.0.0.1", server.port(), options);
  ASSERT_TRUE(outside);
  page.PublishPeerDeath(kDeathMessage);
  auto late = (*outside)->Get("a", 20ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().message, "get key a: not set within 20 ms");
}

INSTANTIATE_TEST_SUITE_P(, StoreDeathTest, testing::Values("Hash", "File", "Tcp"),
                         [](const auto& kind) { return std::string(kind.param); });

TEST_F(DeathTest, EndsTheWaitForALostServer) {
  FakeServer server([&](FakeConnection& connection, int) {
    connection.Greet();
    connection.ReceiveRequest(AddRequest{"/a", 1});
    page.PublishPeerDeath(kDeathMessage);
    connection.AwaitEnd();
  });
  auto store = TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  ASSERT_TRUE(store);
  ExpectDeath((*store)->Add("a", 1), "add to key a");
  auto again = (*store)->Add("a", 1);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(
      again.error().message,
      StartsWith(std::string("add to key a: the connection broke earlier: ") + kDeathMessage));
}

TEST_F(DeathTest, EndsAWaitThatALostServerDoesNotCancel) {
  FakeServer server([&](FakeConnection& connection, int) {
    connection.Greet();
    connection.ReceiveRequest(WaitRequest{{"/a"}});
    page.PublishPeerDeath(kDeathMessage);
    connection.AwaitEnd();
  });
  auto store = TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  ASSERT_TRUE(store);
  ExpectDeath((*store)->Wait(Keys{"a"}, kForever), "wait for key a");
}

TEST_F(DeathTest, KeysThatAreSetMeanwhileCount) {
  FakeServer server([&](FakeConnection& connection, int) {
    connection.Greet();
    connection.ReceiveRequest(WaitRequest{{"/a"}});
    page.PublishPeerDeath(kDeathMessage);
    connection.ReceiveRequest(CancelWaitRequest{});
    connection.Send(std::string(1, '\0') + '\1');  // STOP_WAITING, WAIT_CANCELED
    connection.AwaitEnd();
  });
  auto store = TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  ASSERT_TRUE(store);
  EXPECT_TRUE((*store)->Wait(Keys{"a"}, kForever));
}

// A BARRIER that the server releases after the time-out, but before it receives
// the CANCEL_WAIT.
TEST_F(DeathTest, ABarrierThatIsReleasedMeanwhileCounts) {
  BarrierRequest request{"/b", 2};
  FakeServer server([&](FakeConnection& connection, int) {
    connection.Greet();
    for (bool dies : {false, true}) {
      connection.ReceiveRequest(request);
      if (dies) page.PublishPeerDeath(kDeathMessage);
      connection.ReceiveRequest(CancelWaitRequest{});
      connection.Send(std::string(1, '\0') + '\1');  // STOP_WAITING, WAIT_CANCELED
    }
    connection.AwaitEnd();
  });
  auto store = TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  ASSERT_TRUE(store);
  EXPECT_TRUE((*store)->Barrier("b", 2, 0ms));
  EXPECT_TRUE((*store)->Barrier("b", 2, kForever));
}

TEST_F(DeathTest, EndsTheAttemptsToConnect) {
  Fd bound = BoundSocket();
  page.PublishPeerDeath(kDeathMessage);
  auto store =
      TcpStore::Connect("127.0.0.1", SocketAddress::LocalOf(bound.get())->port(), TcpOptions());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(store.error().message,
              AllOf(HasSubstr(std::string(": ") + kDeathMessage + "; connect to "),
                    HasSubstr("nobody listens there (attempt 1, after ")));
}

TEST_F(DeathTest, EndsTheWaitForAGreeting) {
  FakeServer server([&](FakeConnection& connection, int) {
    page.PublishPeerDeath(kDeathMessage);
    connection.AwaitEnd();
  });
  auto store = TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(store.error().message, HasSubstr(std::string(": ") + kDeathMessage + "; waited "));
}

TEST_F(DeathTest, EndsTheWaitForAFilesLock) {
  test::TempFolder folder;
  std::string path = folder.Write("store", "");
  TimePoint deadline = DeadlineAfter(kForever);
  auto held = FileLock::Acquire(Fd(open(path.c_str(), O_RDWR | O_CLOEXEC)), deadline, watch);
  ASSERT_TRUE(held) << held.error().message;
  page.PublishPeerDeath(kDeathMessage);
  auto lock = FileLock::Acquire(Fd(open(path.c_str(), O_RDWR | O_CLOEXEC)), deadline, watch);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(lock.error().message,
              StartsWith(std::string("lock: ") + kDeathMessage + "; waited "));
}

}  // namespace
}  // namespace rankrun::store

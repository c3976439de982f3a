#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "store/describe.h"
#include "store/file_lock.h"
#include "store/file_store.h"
#include "store/hash_store.h"
#include "store/tcp_store.h"
#include "tests/base/support.h"
#include "tests/store/fake_server.h"
#include "tests/store/server_thread.h"

// What becomes of waits when the agent says that a worker has died.
namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

using Keys = std::vector<std::string>;

constexpr const char* kWord = "rank 1 was killed by SIGKILL";
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
  EXPECT_THAT(result.error().message, StartsWith(what + ": " + kWord + "; waited "));
}

TEST_P(StoreDeathTest, EndsAWaitOfEachKind) {
  ASSERT_TRUE(store->Set("a", "1"));
  std::thread agent([&] { page.TellDeath(kWord); });
  ExpectDeath(store->Wait(Keys{"a", "b"}, kForever), "wait for keys a, b");
  ExpectDeath(store->Get("b", kForever), "get key b");
  ExpectDeath(store->MultiGet(Keys{"a", "b"}, kForever), "get keys a, b");
  ExpectDeath(store->QueuePop("q", kForever), "pop from queue q");
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
  page.TellDeath(kWord);
  for (std::thread& thread : waiting) thread.join();
}

TEST_P(StoreDeathTest, LeavesWhatIsThere) {
  page.TellDeath(kWord);
  ExpectDeath(store->Get("a", kForever), "get key a");
  ASSERT_TRUE(store->Set("a", "1"));
  EXPECT_EQ(*store->Get("a", kForever), "1");
  EXPECT_TRUE(store->Wait(Keys{"a"}, 0ms));
  EXPECT_EQ(*store->Add("n", 3), 3);
  ASSERT_TRUE(store->QueuePush("q", "x"));
  EXPECT_EQ(*store->QueuePop("q", kForever), "x");
  EXPECT_TRUE(store->Clone(kForever));
}

TEST_P(StoreDeathTest, IsNotNoticedByAnotherKindOfProgram) {
  TcpStoreOptions options{.connect_timeout = kForever};
  auto outside = TcpStore::Connect("127.0.0.1", server.port(), options);
  ASSERT_TRUE(outside);
  page.TellDeath(kWord);
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
    page.TellDeath(kWord);
    connection.AwaitEnd();
  });
  auto store = TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  ASSERT_TRUE(store);
  ExpectDeath((*store)->Add("a", 1), "add to key a");
  auto again = (*store)->Add("a", 1);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(again.error().message,
              StartsWith(std::string("add to key a: the connection broke earlier: ") + kWord));
}

TEST_F(DeathTest, EndsAWaitForKeysThatALostServerDoesNotTakeBack) {
  FakeServer server([&](FakeConnection& connection, int) {
    connection.Greet();
    connection.ReceiveRequest(WaitRequest{{"/a"}});
    page.TellDeath(kWord);
    connection.AwaitEnd();
  });
  auto store = TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  ASSERT_TRUE(store);
  ExpectDeath((*store)->Wait(Keys{"a"}, kForever), "wait for key a");
}

TEST_F(DeathTest, KeysThatComeWithItHaveCome) {
  FakeServer server([&](FakeConnection& connection, int) {
    connection.Greet();
    connection.ReceiveRequest(WaitRequest{{"/a"}});
    page.TellDeath(kWord);
    connection.ReceiveRequest(CancelWaitRequest{});
    connection.Send(std::string(1, '\0') + '\1');  // STOP_WAITING, WAIT_CANCELED
    connection.AwaitEnd();
  });
  auto store = TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  ASSERT_TRUE(store);
  EXPECT_TRUE((*store)->Wait(Keys{"a"}, kForever));
}

TEST_F(DeathTest, EndsTheAttemptsToConnect) {
  Fd bound = BoundSocket();
  page.TellDeath(kWord);
  auto store =
      TcpStore::Connect("127.0.0.1", SocketAddress::LocalOf(bound.get())->port(), TcpOptions());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(store.error().message, AllOf(HasSubstr(std::string(": ") + kWord + "; connect to "),
                                           HasSubstr("nobody listens there (attempt 1, after ")));
}

TEST_F(DeathTest, EndsTheWaitForAGreeting) {
  FakeServer server([&](FakeConnection& connection, int) {
    page.TellDeath(kWord);
    connection.AwaitEnd();
  });
  auto store = TcpStore::Connect("127.0.0.1", server.port(), TcpOptions());
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(store.error().message, HasSubstr(std::string(": ") + kWord + "; waited "));
}

TEST_F(DeathTest, EndsTheWaitForAFilesLock) {
  test::TempFolder folder;
  const std::string path = folder.Write("store", "");
  const TimePoint deadline = DeadlineAfter(kForever);
  auto held = FileLock::Acquire(Fd(open(path.c_str(), O_RDWR | O_CLOEXEC)), deadline, watch);
  ASSERT_TRUE(held) << held.error().message;
  page.TellDeath(kWord);
  auto lock = FileLock::Acquire(Fd(open(path.c_str(), O_RDWR | O_CLOEXEC)), deadline, watch);
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::kCancelled);
  EXPECT_THAT(lock.error().message, StartsWith(std::string("lock: ") + kWord + "; waited "));
}

}  // namespace
}  // namespace rankrun::store

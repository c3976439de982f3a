#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/store/clients/tcp_store_fixture.h"

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

using Keys = std::vector<std::string>;

using TcpStoreCloneTest = TcpStoreFixture;

TEST_F(TcpStoreCloneTest, ACloneDoesNotWaitForTheOther) {
  auto clone = store->Clone(20s);
  ASSERT_TRUE(clone) << clone.error().message;
  std::thread waiter([this] { EXPECT_TRUE(store->Wait(Keys{"k"}, 20s)); });
  EXPECT_EQ(*(*clone)->Add("n", 1), 1);
  EXPECT_TRUE((*clone)->Set("k", ""));
  waiter.join();
}

TEST_F(TcpStoreCloneTest, ABrokenStoreCanBeCloned) {
  server.OnLoop([](Server& s) { s.Reset(); });
  EXPECT_FALSE(store->Add("n", 1));
  EXPECT_FALSE(store->Add("n", 1));
  auto clone = store->Clone(20s);
  ASSERT_TRUE(clone) << clone.error().message;
  EXPECT_EQ(*(*clone)->Add("n", 1), 1);
}

TEST(TcpStoreCloneFaultsTest, ACloneDoesNotWaitForAServerThatIsGone) {
  auto server = std::make_unique<ServerThread>();
  auto store = TcpStore::Connect("127.0.0.1", server->port(), {.connect_timeout = 20s});
  ASSERT_TRUE(store) << store.error().message;
  server.reset();
  auto clone = (*store)->Clone(1h);
  ASSERT_FALSE(clone);
  EXPECT_EQ(clone.error().code, ErrorCode::kPeerLost);
  EXPECT_THAT(clone.error().message, HasSubstr("nobody listens there"));
}
}  // namespace
}  // namespace rankrun::store

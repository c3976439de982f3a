#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/clients/prefix_store.h"
#include "tests/store/clients/tcp_store_fixture.h"
#include "tests/store/server/raw_client.h"

// APPEND, MULTI_GET, MULTI_SET, GETNUMKEYS, LIST_KEYS, BARRIER and prefixes.

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

using Keys = std::vector<std::string>;

using TcpStoreKeysTest = TcpStoreFixture;

TEST_F(TcpStoreKeysTest, AppendCreatesOrExtendsAValue) {
  ASSERT_TRUE(store->Append("k", "one"));
  ASSERT_TRUE(store->Append("k", std::string("\0two", 4)));
  EXPECT_EQ(*store->Get("k", 10s), std::string("one\0two", 7));
}

TEST_F(TcpStoreKeysTest, ManyKeysAreSetAndFetchedAtOnce) {
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

TEST_F(TcpStoreKeysTest, AnExistingKeyIsReadWithoutAWait) {
  ASSERT_TRUE(store->Set("k", "v"));
  EXPECT_EQ(*store->GetNow("k"), "v");
  EXPECT_EQ(*store->GetNow("missing"), "");
}

TEST_F(TcpStoreKeysTest, OtherPrefixesThanTheSlashShowOtherKeys) {
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

TEST_F(TcpStoreKeysTest, MultiSetOfUnequalLengthsIsInvalid) {
  auto set = store->MultiSet(Keys{"a", "b"}, Keys{"1"});
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(set.error().message, "set keys a, b: 2 keys and 1 value");
  EXPECT_FALSE(*store->Check(Keys{"a"}));
}

// Opcode 18 counts at the key itself; a view by PrefixStore does not.
TEST_F(TcpStoreKeysTest, ABarrierCountsAtItsKeyAndIsNotThatOfAPrefix) {
  ASSERT_TRUE(store->Barrier("k", 1, 0ms));
  EXPECT_EQ(*store->GetNow("k"), "1");
  PrefixStore view("p", *store);
  ASSERT_TRUE(view.Barrier("k", 1, 0ms));
  EXPECT_THAT(*store->ListKeys(), UnorderedElementsAre("k", "p/k/num_members", "p/k/last_member"));
  EXPECT_EQ(*store->Add("n", 1), 1) << "the connection is in step";
}

TEST_F(TcpStoreKeysTest, ABarrierThatTimesOutLeavesTheStoreUsable) {
  for (int i = 1; i <= 20; ++i) {
    EXPECT_EQ(store->Barrier("b", 100, 0ms).error().message,
              "meet at barrier b: " + std::to_string(i) + " of 100 have come within 0 ms");
    EXPECT_EQ(*store->Add("n", 1), i);
  }
}

TEST_F(TcpStoreKeysTest, MultiGetWaitsForAllKeys) {
  ASSERT_TRUE(store->Set("a", "1"));
  auto got = store->MultiGet(Keys{"a", "b"}, 20ms);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(got.error().message, "get keys a, b: key b not set within 20 ms");
  ASSERT_TRUE(store->Set("b", ""));
  EXPECT_THAT(*store->MultiGet(Keys{"b", "a", "b"}, 10s), ElementsAre("", "1", ""));
}

TEST_F(TcpStoreKeysTest, ListsTheKeysThatAreNotPyTorchsOwn) {
  RawClient raw(Loopback(server.port()));
  raw.Ask(AddRequest{"init/", 1});
  EXPECT_TRUE(raw.Receive(8).size() == 8);
  ASSERT_TRUE(store->Set("a", ""));
  ASSERT_TRUE(store->Set("", ""));
  EXPECT_THAT(*store->ListKeys(), UnorderedElementsAre("a", ""));
  EXPECT_EQ(*store->NumKeys(), 3);
}
}  // namespace
}  // namespace rankrun::store

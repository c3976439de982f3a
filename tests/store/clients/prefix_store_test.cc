#include "store/clients/prefix_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/clients/hash_store.h"

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

using Keys = std::vector<std::string>;

TEST(PrefixStore, AddsItsPrefixAndASlashToKeys) {
  HashStore whole;
  PrefixStore store("p", whole);
  ASSERT_TRUE(store.Set("k", "1"));
  EXPECT_EQ(*whole.Get("p/k", 0ms), "1");
  ASSERT_TRUE(store.QueuePush("q", "2"));
  EXPECT_EQ(*whole.QueueLength("p/q"), 1);
  EXPECT_EQ(store.prefix(), "p");
  EXPECT_EQ(&store.underlying_store(), &whole);
}

TEST(PrefixStore, Nests) {
  HashStore whole;
  PrefixStore outer("a", whole);
  PrefixStore inner("b", outer);
  ASSERT_TRUE(inner.Set("k", "1"));
  EXPECT_THAT(*whole.ListKeys(), ElementsAre("a/b/k"));
  EXPECT_THAT(*outer.ListKeys(), ElementsAre("b/k"));
  EXPECT_THAT(*inner.ListKeys(), ElementsAre("k"));
}

TEST(PrefixStore, ListsOnlyItsOwnKeysButCountsAll) {
  HashStore whole;
  PrefixStore store("p", whole);
  ASSERT_TRUE(store.Set("k", "1"));
  ASSERT_TRUE(whole.Set("pk", "1"));
  ASSERT_TRUE(whole.Set("p", "1"));
  ASSERT_TRUE(PrefixStore("pp", whole).Set("k", "1"));
  EXPECT_THAT(*store.ListKeys(), ElementsAre("k"));
  EXPECT_EQ(*store.NumKeys(), 4);
}

TEST(PrefixStore, HasAnEmptyPrefixToo) {
  HashStore whole;
  PrefixStore store("", whole);
  ASSERT_TRUE(store.Set("", "1"));
  EXPECT_THAT(*whole.ListKeys(), ElementsAre("/"));
  EXPECT_THAT(*store.ListKeys(), ElementsAre(""));
}

TEST(PrefixStore, NamesTheWholeKeyInErrors) {
  HashStore whole;
  auto got = PrefixStore("p", whole).Get("k", 0ms);
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message, HasSubstr("p/k"));
}

TEST(PrefixStore, MeetsAtKeysOfTheWholeStore) {
  HashStore whole;
  PrefixStore outer("a", whole);
  PrefixStore inner("b", outer);
  EXPECT_EQ(inner.Barrier("k", 2, 0ms).error().message,
            "meet at barrier a/b/k: 1 of 2 have come within 0 ms");
  EXPECT_EQ(*whole.Get("a/b/k/num_members", 0ms), "1");
  EXPECT_TRUE(outer.Barrier("b/k", 2, 0ms));
  EXPECT_EQ(*whole.Get("a/b/k/last_member", 0ms), "1");
  EXPECT_EQ(inner.Barrier("k", 0, 0ms).error().message,
            "meet at barrier a/b/k: world_size is 0: want at least 1");
}

TEST(PrefixStore, TheStoreBelowAllPrefixesIsFound) {
  HashStore whole;
  PrefixStore outer("a", whole);
  PrefixStore inner("b", outer);
  EXPECT_EQ(&BelowPrefixes(inner), &whole);
  EXPECT_EQ(&BelowPrefixes(whole), &whole);
}

TEST(PrefixStore, ItsCloneOutlivesItAndTheOtherStore) {
  std::unique_ptr<Store> clone;
  {
    HashStore whole;
    PrefixStore store("p", whole);
    ASSERT_TRUE(store.Set("k", "1"));
    clone = std::move(*store.Clone(20s));
  }
  EXPECT_EQ(*clone->Get("k", 0ms), "1");
}

}  // namespace
}  // namespace rankrun::store

#include "comm/world/wishes.h"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>

#include "tests/comm/memory_store.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

struct WishesTest : testing::Test {
  // Compares `wishes` with those of `ranks`. Returns the error as text.
  std::string Compare(int rank, const std::vector<int>& ranks, const std::string& wishes,
                      milliseconds timeout = seconds(60)) {
    MemoryStore store(keys);
    auto ok = CompareWishes(store, {"call", rank, ranks}, wishes, MonotonicClock().Now() + timeout);
    return ok ? "alike" : ok.error().message;
  }

  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();
};

TEST_F(WishesTest, EqualOnesPass) {
  std::vector<std::string> texts(2);
  RunRanks(2, [&](int r) { texts[static_cast<size_t>(r)] = Compare(r, {0, 1}, "a"); });
  EXPECT_THAT(texts, Each("alike"));
}

TEST_F(WishesTest, ARankThatWantsSomethingElseEndsTheWaitOfAll) {
  std::vector<std::string> texts(2);
  // Rank 0 waits for rank 9, too, which never comes.
  RunRanks(2, [&](int r) {
    texts[static_cast<size_t>(r)] = r == 0 ? Compare(0, {0, 1, 9}, "a") : Compare(1, {0, 1}, "b");
  });
  EXPECT_THAT(texts,
              Each(AnyOf("rank 0 wants a; rank 1 wants b", "rank 1 wants b; rank 0 wants a")));
}

TEST_F(WishesTest, ALateRankFailsAsTheOthersDid) {
  for (int rank : {3, 4}) {
    EXPECT_THAT(Compare(rank, {3, 4, 8}, "a", milliseconds(rank == 3 ? 1 : 60'000)),
                AllOf(StartsWith("1 of 3 present after "), HasSubstr(", missing: ranks 4, 8")));
  }
}

TEST_F(WishesTest, WhoeverComesAfterASuccessWithOtherWishesFails) {
  EXPECT_EQ(Compare(3, {3}, "a"), "alike");
  EXPECT_EQ(Compare(4, {4}, "b"), "rank 3 wants a; rank 4 wants b");
}

TEST_F(WishesTest, ARefusalHasItsReason) {
  MemoryStore store(keys);
  RefuseWishes(store, {"call", 7, {}}, {ErrorCode::kInvalid, "no list"});
  EXPECT_EQ(Compare(3, {3, 7}, "a"), "rank 7 refused it: no list");
}

TEST(CheckAlikeTest, ListsTheWishesOrTheRefusal) {
  EXPECT_TRUE(CheckAlike({0, 1}, {"a", "a"}));
  EXPECT_EQ(CheckAlike({0, 1, 2}, {"a", "b", "a"}).error().message,
            "ranks 0, 2 want a; rank 1 wants b");
  EXPECT_EQ(CheckAlike({0, 4}, {"a", Refusal({ErrorCode::kInvalid, "no"})}).error().message,
            "rank 4 refused it: no");
}

}  // namespace
}  // namespace rankrun::comm

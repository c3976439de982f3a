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

TEST_F(WishesTest, DifferentOnesAreListedOnAllRanks) {
  std::vector<std::string> texts(3);
  RunRanks(3, [&](int r) {
    texts[static_cast<size_t>(r)] = Compare(r, {0, 1, 2}, r == 1 ? "b" : "a");
  });
  EXPECT_THAT(texts, Each("ranks 0, 2 want a; rank 1 wants b"));
}

TEST_F(WishesTest, ARefusalHasItsReason) {
  MemoryStore store(keys);
  RefuseWishes(store, {"call", 7, {}}, {ErrorCode::kInvalid, "no list"});
  EXPECT_EQ(Compare(3, {3, 7}, "a"), "rank 7 refused it: no list");
}

TEST_F(WishesTest, MissingRanksAreNamed) {
  MemoryStore store(keys);
  ASSERT_TRUE(store.Set("call/5", "a"));
  EXPECT_THAT(Compare(3, {3, 4, 5, 8}, "a", milliseconds(1)),
              AllOf(StartsWith("2 of 4 present after "), HasSubstr(", missing: ranks 4, 8")));
}

TEST_F(WishesTest, ForgottenOnesAreGone) {
  MemoryStore store(keys);
  EXPECT_EQ(Compare(3, {3}, "a"), "alike");
  EXPECT_TRUE(*store.Check(std::vector<std::string>{"call/3"}));
  ForgetWishes(store, {"call", 3, {}});
  EXPECT_FALSE(*store.Check(std::vector<std::string>{"call/3"}));
}

}  // namespace
}  // namespace rankrun::comm

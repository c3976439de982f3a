// Contract of every store. K-n are the vectors of torch.distributed's
// documentation.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/store/store_environments.h"

namespace rankrun::store {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

using Keys = std::vector<std::string>;

struct StoreContract : testing::TestWithParam<StoreKind> {
  std::unique_ptr<StoreEnvironment> environment = GetParam().make();
  std::unique_ptr<Store> store = environment->Open();
  std::unique_ptr<Store> other = environment->Open();

  // Checks that `wait` does not return before `change`. Runs `change` once
  // before and once after `wait` begins: both orders must work. Returns the
  // result of `wait`.
  template <typename Wait, typename Change>
  bool WakesUp(Wait wait, Change change) {
    std::atomic<bool> begun{false};
    bool result = false;
    std::thread waiter([&] {
      begun = true;
      result = wait();
    });
    while (!begun) std::this_thread::yield();
    change();
    waiter.join();
    return result;
  }
};

TEST_P(StoreContract, K1AddCounts) {
  EXPECT_EQ(*store->Add("a", 1), 1);
  EXPECT_EQ(*store->Add("a", 6), 7);
  EXPECT_EQ(*store->Get("a", kLong), "7");
}

TEST_P(StoreContract, K2AppendConcatenates) {
  ASSERT_TRUE(store->Append("a", "po"));
  ASSERT_TRUE(store->Append("a", "tato"));
  EXPECT_EQ(*store->Get("a", kLong), "potato");
}

TEST_P(StoreContract, K3CheckDoesNotWait) {
  EXPECT_FALSE(*store->Check(Keys{"a"}));
  ASSERT_TRUE(store->Add("a", 1));
  EXPECT_TRUE(*store->Check(Keys{"a"}));
  EXPECT_FALSE(*store->Check(Keys{"a", "b"}));
  EXPECT_TRUE(*store->Check(Keys{}));
}

TEST_P(StoreContract, K4CompareSetSwaps) {
  ASSERT_TRUE(store->Set("k", "first_value"));
  ASSERT_TRUE(store->CompareSet("k", "first_value", "second_value"));
  EXPECT_EQ(*store->Get("k", kLong), "second_value");
}

TEST_P(StoreContract, K5DeleteReturnsWhetherTheKeyExisted) {
  ASSERT_TRUE(store->Set("first_key", "v"));
  EXPECT_TRUE(*store->Delete("first_key"));
  EXPECT_FALSE(*store->Delete("first_key"));
  EXPECT_FALSE(*store->Delete("bad_key"));
  EXPECT_FALSE(*other->Check(Keys{"first_key"}));
}

TEST_P(StoreContract, K6MultiSetAndMultiGetKeepTheOrder) {
  ASSERT_TRUE(store->MultiSet(Keys{"first", "second"}, Keys{"po", "tato"}));
  EXPECT_THAT(*store->MultiGet(Keys{"second", "first"}, kLong), ElementsAre("tato", "po"));
  EXPECT_EQ(*store->Get("first", kLong), "po");
  EXPECT_TRUE(store->MultiGet(Keys{}, 0ms)->empty());
  EXPECT_TRUE(store->MultiSet(Keys{}, Keys{}));
  auto uneven = store->MultiSet(Keys{"third"}, Keys{});
  ASSERT_FALSE(uneven);
  EXPECT_EQ(uneven.error().code, ErrorCode::kInvalid);
  EXPECT_FALSE(*store->Check(Keys{"third"}));
}

TEST_P(StoreContract, K7NumKeysCountsKeys) {
  int64_t before = *store->NumKeys();  // the store's own bookkeeping
  ASSERT_TRUE(store->Set("k", "v"));
  ASSERT_TRUE(store->Set("k", "w"));
  EXPECT_EQ(*store->NumKeys(), before + 1);
  ASSERT_TRUE(store->Delete("k"));
  EXPECT_EQ(*store->NumKeys(), before);
}

// K-8 to K-10: here each call has its own time-out.
TEST_P(StoreContract, K8WaitEndsAtItsTimeoutAndNamesTheKeys) {
  TimePoint start = MonotonicClock().Now();
  auto waited = store->Wait(Keys{"bad_key"}, 120ms);
  Duration took = MonotonicClock().Now() - start;
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(waited.error().message, AllOf(HasSubstr("bad_key"), HasSubstr("120 ms")));
  EXPECT_GE(took, 120ms);
  EXPECT_LT(took, kLong);
}

TEST_P(StoreContract, EveryWaitingCallTimesOut) {
  ASSERT_TRUE(store->Set("there", "v"));
  for (auto timeout : {0ms, -5ms, 3ms}) {
    auto got = store->Get("absent", timeout);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(got.error().message, HasSubstr("absent"));
    auto several = store->MultiGet(Keys{"there", "absent"}, timeout);
    ASSERT_FALSE(several);
    EXPECT_EQ(several.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(several.error().message, HasSubstr("absent"));
    auto popped = store->QueuePop("absent", timeout);
    ASSERT_FALSE(popped);
    EXPECT_EQ(popped.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(popped.error().message, HasSubstr("absent"));
    EXPECT_TRUE(store->Wait(Keys{"there"}, timeout));
    EXPECT_TRUE(store->Wait(Keys{}, timeout));
  }
  EXPECT_EQ(*store->Get("there", 0ms), "v");
}

TEST_P(StoreContract, K12OneClientGetsTheValueOfAnother) {
  ASSERT_TRUE(store->Set("first_key", "first_value"));
  EXPECT_EQ(*other->Get("first_key", kLong), "first_value");
  ASSERT_TRUE(other->Set("first_key", "second_value"));
  EXPECT_EQ(*store->Get("first_key", kLong), "second_value");
}

TEST_P(StoreContract, CompareSetFollowsItsTable) {
  auto missing = store->CompareSet("c", "x", "y");
  EXPECT_EQ(missing->value, "x");  // the expected value, although the key is missing
  EXPECT_FALSE(missing->swapped);
  EXPECT_FALSE(*store->Check(Keys{"c"}));

  auto created = store->CompareSet("c", "", "one");
  EXPECT_EQ(created->value, "one");
  EXPECT_TRUE(created->swapped);

  auto different = store->CompareSet("c", "x", "y");
  EXPECT_EQ(different->value, "one");
  EXPECT_FALSE(different->swapped);

  auto not_missing = store->CompareSet("c", "", "y");
  EXPECT_EQ(not_missing->value, "one");
  EXPECT_FALSE(not_missing->swapped);

  auto equal = store->CompareSet("c", "one", "");
  EXPECT_EQ(equal->value, "");
  EXPECT_TRUE(equal->swapped);

  auto empty = store->CompareSet("c", "", "two");
  EXPECT_EQ(empty->value, "two");
  EXPECT_TRUE(empty->swapped);
  EXPECT_EQ(*other->Get("c", kLong), "two");
}

// `swapped` is exact, except over the wire: there this case counts as stored,
// because the value is the desired one.
TEST_P(StoreContract, CompareSetOfAMissingKeyToTheExpectedValueStoresNothing) {
  auto same = store->CompareSet("c", "x", "x");
  EXPECT_EQ(same->value, "x");
  EXPECT_EQ(same->swapped, environment->goes_over_the_wire());
  EXPECT_FALSE(*other->Check(Keys{"c"}));
}

TEST_P(StoreContract, ATimeOutNamesTheKeysThatAreMissing) {
  ASSERT_TRUE(store->Set("there", "v"));
  EXPECT_THAT(store->Wait(Keys{"there", "absent"}, 3ms).error().message,
              AllOf(HasSubstr("absent not set within 3 ms"), HasSubstr(": key ")));
  EXPECT_THAT(store->MultiGet(Keys{"absent", "there", "away"}, 3ms).error().message,
              AllOf(HasSubstr("away not set within 3 ms"), HasSubstr(": keys ")));
}

// Get waits for a key, except over the wire, where a queue ends its wait, too.
TEST_P(StoreContract, GetOfAQueuesNameFindsNoValue) {
  ASSERT_TRUE(store->QueuePush("q", "item"));
  auto value = store->Get("q", 3ms);
  if (environment->goes_over_the_wire()) {
    EXPECT_EQ(*value, "");
  } else {
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, ErrorCode::kTimeout);
  }
  EXPECT_EQ(*store->QueueLength("q"), 1);
}

TEST_P(StoreContract, AddReadsNumbersAsPyTorchDoes) {
  EXPECT_EQ(*store->Add("zero", 0), 0);
  EXPECT_EQ(*store->Get("zero", kLong), "0");
  EXPECT_EQ(*store->Add("minus", -7), -7);
  EXPECT_EQ(*store->Get("minus", kLong), "-7");
  std::vector<std::pair<std::string, int64_t>> numbers = {
      {"12abc", 12}, {" \t5", 5}, {"+3", 3}, {"1.5", 1}, {"0x10", 0}};
  for (const auto& [text, number] : numbers) {
    ASSERT_TRUE(store->Set("n", text));
    EXPECT_EQ(*store->Add("n", 1), number + 1) << text;
  }
}

TEST_P(StoreContract, AddToANonNumberFailsAndChangesNothing) {
  for (std::string text : {"abc", "", "+-1", "9223372036854775808"}) {
    auto mine = environment->Open();  // an error may break this client
    ASSERT_TRUE(mine->Set("n", text));
    EXPECT_FALSE(mine->Add("n", 1)) << text;
    EXPECT_EQ(*other->Get("n", kLong), text);
  }
}

TEST_P(StoreContract, KeysAndValuesAreBytes) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  std::string large(3'000'000, 'x');
  ASSERT_TRUE(store->Set(bytes, bytes));
  ASSERT_TRUE(store->Set("empty", ""));
  ASSERT_TRUE(store->Set("large", large));
  EXPECT_EQ(*other->Get(bytes, kLong), bytes);
  EXPECT_EQ(*other->Get("empty", kLong), "");
  EXPECT_TRUE(*other->Get("large", kLong) == large);
}

TEST_P(StoreContract, ListKeysGivesTheNamesThatGetTakes) {
  ASSERT_TRUE(store->Set("a", "1"));
  ASSERT_TRUE(store->Add("b/c", 1));
  ASSERT_TRUE(store->Set("gone", "1"));
  ASSERT_TRUE(store->Delete("gone"));
  ASSERT_TRUE(store->QueuePush("queue", "1"));
  EXPECT_THAT(*other->ListKeys(), UnorderedElementsAre("a", "b/c"));
}

TEST_P(StoreContract, QueuesAreFirstInFirstOut) {
  EXPECT_EQ(*store->QueueLength("q"), 0);
  EXPECT_EQ(*store->TryQueuePop("q"), std::nullopt);
  for (const char* value : {"one", "", "three"}) ASSERT_TRUE(store->QueuePush("q", value));
  EXPECT_EQ(*other->QueueLength("q"), 3);
  EXPECT_EQ(*other->QueuePop("q", kLong), "one");
  EXPECT_EQ(*store->TryQueuePop("q"), "");
  EXPECT_EQ(*other->QueuePop("q", 0ms), "three");
  EXPECT_EQ(*store->QueueLength("q"), 0);
  EXPECT_EQ(*store->TryQueuePop("q"), std::nullopt);
}

TEST_P(StoreContract, QueuesShareOnlyWaitAndCheckWithTheKeys) {
  ASSERT_TRUE(store->QueuePush("q", "item"));
  EXPECT_TRUE(*store->Check(Keys{"q"}));
  EXPECT_TRUE(store->Wait(Keys{"q"}, 0ms));
  EXPECT_FALSE(*store->Delete("q"));
  ASSERT_TRUE(store->Set("q", "value"));
  EXPECT_EQ(*store->Get("q", kLong), "value");
  EXPECT_EQ(*store->QueuePop("q", kLong), "item");
  EXPECT_EQ(*store->Get("q", kLong), "value");
  ASSERT_TRUE(store->Delete("q"));
  EXPECT_FALSE(*store->Check(Keys{"q"}));
}

TEST_P(StoreContract, EveryWayToCreateAKeyWakesTheWaiters) {
  const std::vector<std::function<void(const std::string&)>> ways = {
      [&](auto& key) { ASSERT_TRUE(other->Set(key, "v")); },
      [&](auto& key) { ASSERT_TRUE(other->Add(key, 1)); },
      [&](auto& key) { ASSERT_TRUE(other->Append(key, "v")); },
      [&](auto& key) { ASSERT_TRUE(other->CompareSet(key, "", "v")); },
      [&](auto& key) { ASSERT_TRUE(other->MultiSet(Keys{key}, Keys{"v"})); },
      [&](auto& key) { ASSERT_TRUE(other->QueuePush(key, "v")); },
  };
  for (size_t i = 0; i < ways.size(); ++i) {
    std::string key = "key" + std::to_string(i);
    auto wait = [&] { return bool(store->Wait(Keys{key}, kLong)); };
    EXPECT_TRUE(WakesUp(wait, [&] { ways[i](key); })) << i;
  }
}

TEST_P(StoreContract, GetMultiGetAndQueuePopWakeUp) {
  EXPECT_TRUE(WakesUp([&] { return *store->Get("g", kLong) == "v"; },
                      [&] { ASSERT_TRUE(other->Set("g", "v")); }));
  EXPECT_TRUE(WakesUp(
      [&] {
        return *store->MultiGet(Keys{"x", "y"}, kLong) == Keys{"1", "2"};
      },
      [&] {
        ASSERT_TRUE(other->Set("y", "2"));
        ASSERT_TRUE(other->Set("x", "1"));
      }));
  EXPECT_TRUE(WakesUp([&] { return *store->QueuePop("q", kLong) == "v"; },
                      [&] { ASSERT_TRUE(other->QueuePush("q", "v")); }));
}

TEST_P(StoreContract, ABarrierEndsWithTheLastOfItsCallers) {
  EXPECT_TRUE(WakesUp([&] { return bool(store->Barrier("b", 2, kLong)); },
                      [&] { ASSERT_TRUE(other->Barrier("b", 2, kLong)); }));
  EXPECT_TRUE(WakesUp([&] { return bool(store->BarrierByKeys("keys", 2, kLong)); },
                      [&] { ASSERT_TRUE(other->BarrierByKeys("keys", 2, kLong)); }));
  EXPECT_TRUE(store->Barrier("b", 2, 0ms)) << "a key that has served";
  EXPECT_TRUE(store->Barrier("alone", 1, 0ms));
}

TEST_P(StoreContract, ABarrierThatTimesOutSaysHowManyHaveCome) {
  for (auto timeout : {0ms, 3ms}) {
    auto met = store->Barrier("b", 3, timeout);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, ErrorCode::kTimeout);
    EXPECT_THAT(met.error().message, HasSubstr(timeout == 0ms ? "b: 1 of 3 have come within 0 ms"
                                                              : "b: 2 of 3 have come within 3 ms"));
  }
  EXPECT_TRUE(other->Barrier("b", 3, 0ms)) << "those that timed out have come";
  for (int64_t size : {0, -1}) {
    auto met = store->Barrier("none", size, kLong);
    ASSERT_FALSE(met);
    EXPECT_EQ(met.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(met.error().message, store->BarrierByKeys("none", size, kLong).error().message);
  }
  EXPECT_EQ(*store->Add("none", 0), 0);
}

TEST_P(StoreContract, OneKeyWakesAllWaiters) {
  std::atomic<int> woken{0};
  std::vector<std::thread> waiters;
  for (int i = 0; i < 8; ++i) {
    waiters.emplace_back([&, mine = environment->Open()] {
      if (mine->Wait(Keys{"go", "go"}, kLong)) ++woken;
    });
  }
  ASSERT_TRUE(store->Set("go", ""));
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(woken, 8);
}

TEST_P(StoreContract, CloneSharesTheDataAndDoesNotWaitForOurCalls) {
  auto clone = store->Clone(kLong);
  ASSERT_TRUE(clone);
  EXPECT_TRUE(WakesUp([&] { return *store->Get("k", kLong) == "v"; },
                      [&] { ASSERT_TRUE((*clone)->Set("k", "v")); }));
  store.reset();
  EXPECT_EQ(*(*clone)->Get("k", kLong), "v");
  EXPECT_TRUE((*(*clone)->Clone(kLong))->Set("k", "w"));
  EXPECT_EQ(*other->Get("k", kLong), "w");
}

TEST_P(StoreContract, ThreadsCountExactlyAndPopEachItemOnce) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  std::atomic<int64_t> popped{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, mine = environment->Open()] {
      for (int round = 1; round <= kRounds; ++round) {
        EXPECT_TRUE(mine->Add("n", 1));
        EXPECT_TRUE(mine->QueuePush("q", std::to_string(round)));
        popped += std::stoll(*mine->QueuePop("q", kLong));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*store->Get("n", kLong), std::to_string(kThreads * kRounds));
  EXPECT_EQ(popped, kThreads * kRounds * (kRounds + 1) / 2);
  EXPECT_EQ(*store->QueueLength("q"), 0);
}

TEST_P(StoreContract, ForkedProcessesShareTheStore) {
  if (!environment->crosses_processes()) GTEST_SKIP() << "a store within one process";
  constexpr int kProcesses = 4;
  constexpr int kRounds = 25;
  std::vector<pid_t> children;
  for (int rank = 0; rank < kProcesses; ++rank) {
    children.push_back(test::Fork([&] {
      auto mine = environment->Open();
      for (int round = 0; round < kRounds; ++round) {
        std::string key = std::to_string(round) + "/";
        int next = (rank + 1) % kProcesses;
        if (!mine->Set(key + std::to_string(rank), "here") || !mine->Add("n", 1)) return 1;
        if (!mine->Get(key + std::to_string(next), kLong)) return 2;
      }
      return mine->QueuePush("done", std::to_string(rank)) ? 0 : 3;
    }));
  }
  Keys done;
  for (int i = 0; i < kProcesses; ++i) done.push_back(*store->QueuePop("done", kLong));
  EXPECT_THAT(done, UnorderedElementsAre("0", "1", "2", "3"));
  for (pid_t child : children) EXPECT_EQ(test::WaitForExit(child), (ProcessExit{false, 0}));
  EXPECT_EQ(*store->Get("n", kLong), std::to_string(kProcesses * kRounds));
}

INSTANTIATE_TEST_SUITE_P(All, StoreContract, testing::ValuesIn(StoreKinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace rankrun::store

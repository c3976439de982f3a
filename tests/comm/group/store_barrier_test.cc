#include "comm/group/store_barrier.h"

#include <gmock/gmock.h>

#include <memory>
#include <vector>

#include "base/status/death_watch.h"
#include "comm/group/failure_time.h"
#include "store/clients/table_store.h"
#include "store/clients/tcp_store.h"
#include "tests/comm/memory_store.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr milliseconds kLong{60'000};
constexpr milliseconds kShort{50};

struct StoreBarrierTest : testing::Test {
  // Passes one barrier as each of `ranks` and returns their errors. If it
  // should fail, the first of them has the deadline and begins after the others
  // have arrived.
  std::vector<std::string> PassAs(const std::vector<int>& ranks, milliseconds timeout) {
    std::vector<std::string> told(ranks.size());
    std::string arrived = "b/" + std::to_string(passes++) + "/arrived/";
    RunRanks(static_cast<int>(ranks.size()), [&](int i) {
      auto index = static_cast<size_t>(i);
      for (size_t other = 1; timeout == kShort && i == 0 && other < ranks.size(); ++other) {
        EXPECT_TRUE(stores[3]->Get(arrived + std::to_string(ranks[other]), kLong));
      }
      auto passed = BarrierOf(ranks[index]).Pass(i == 0 ? timeout : kLong);
      EXPECT_TRUE(passed || passed.error().code == ErrorCode::kTimeout);
      told[index] = passed ? "passed" : passed.error().message;
    });
    return told;
  }

  StoreBarrier& BarrierOf(int global_rank) { return *barriers[static_cast<size_t>(global_rank)]; }

  StoreBarrierTest() {
    for (int r = 0; r < 4; ++r) {
      stores.push_back(std::make_unique<MemoryStore>(keys));
      barriers.push_back(
          std::make_unique<StoreBarrier>(*stores.back(), "b", r, std::vector<int>{0, 1, 2, 3}));
    }
  }

  int passes = 0;
  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();
  std::vector<std::unique_ptr<MemoryStore>> stores;
  std::vector<std::unique_ptr<StoreBarrier>> barriers;
};

TEST_F(StoreBarrierTest, AllPassWhenAllCome) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(PassAs({0, 1, 2, 3}, kLong), Each("passed"));
  }
}

TEST_F(StoreBarrierTest, AllArrivedRanksGetAllMissingRanks) {
  EXPECT_THAT(PassAs({0, 2}, kShort), Each(EndsWith("missing: ranks 1, 3")));
}

TEST_F(StoreBarrierTest, AnEndIsTheVerdictForThoseThatWaitAndThoseThatCome) {
  const Error reason{ErrorCode::kSystem, "rank 1 aborted"};
  std::vector<std::string> told(3);
  RunRanks(4, [&](int rank) {
    if (rank == 3) {
      for (const char* key : {"b/0/arrived/0", "b/0/arrived/1"}) {
        EXPECT_TRUE(stores[3]->Get(key, kLong));
      }
      BarrierOf(1).End(*stores[3], reason);
    } else if (rank != 2) {
      told[static_cast<size_t>(rank)] = BarrierOf(rank).Pass(kLong).error().message;
    }
  });
  told[2] = BarrierOf(2).Pass(kLong).error().message;
  EXPECT_THAT(told, Each("rank 1 aborted"));
  EXPECT_EQ(BarrierOf(0).Pass(kLong).error().message, "rank 1 aborted");  // the next barrier
}

TEST_F(StoreBarrierTest, AnEndChangesNoBarrierThatIsOver) {
  PassAs({0, 1, 2, 3}, kLong);
  BarrierOf(1).End(*stores[1], {ErrorCode::kSystem, "rank 1 aborted"});
  EXPECT_EQ(*stores[0]->Get("b/0/verdict", kLong), "ok");
}

TEST_F(StoreBarrierTest, ALateRankHearsSinceWhenTheBarrierHasFailed) {
  const WallTime failed = std::chrono::system_clock::now() - std::chrono::seconds(75);
  ASSERT_TRUE(stores[0]->Set("b/0/verdict", "missing " + WithTime("missing: rank 3", failed)));
  EXPECT_EQ(BarrierOf(3).Pass(kLong).error().message,
            "failed 75.0 s before this rank came: missing: rank 3");
}

TEST_F(StoreBarrierTest, ADamagedVerdictIsAnError) {
  for (const char* verdict : {"", "okay", "missing", "missing x", "refused ", "refused ~"}) {
    StoreBarrier barrier(*stores[0], "damaged", 0, std::vector<int>{0, 1});
    ASSERT_TRUE(stores[0]->Set("damaged/0/verdict", verdict));
    Error error = barrier.Pass(kLong).error();
    EXPECT_EQ(error.code, ErrorCode::kProtocol) << verdict;
    EXPECT_EQ(error.message, "the verdict in the store is damaged") << verdict;
  }
}

TEST_F(StoreBarrierTest, RankZeroAloneGetsAllOthersAsMissing) {
  EXPECT_THAT(PassAs({0}, kShort), Each(EndsWith("missing: ranks 1-3")));
}

TEST_F(StoreBarrierTest, AMissingRankZeroIsNamedToo) {
  EXPECT_THAT(PassAs({1, 2, 3}, kShort), Each(EndsWith("missing: rank 0")));
}

TEST_F(StoreBarrierTest, AllRanksGetTheSameText) {
  auto told = PassAs({0, 1, 3}, kShort);
  EXPECT_THAT(told, Each(told[0]));
  EXPECT_THAT(told[0], HasSubstr("3 of 4 present after 0."));
}

TEST_F(StoreBarrierTest, TheFirstDeadlineHoldsForAllRanks) {
  std::string impatient, patient;
  RunRanks(2, [&](int i) {
    if (i == 0) {
      ASSERT_TRUE(stores[3]->Get("b/0/arrived/2", kLong));
    }
    auto passed = BarrierOf(i + 1).Pass(i == 0 ? kShort : kLong);
    ASSERT_FALSE(passed);
    (i == 0 ? impatient : patient) = passed.error().message;
  });
  EXPECT_EQ(patient, impatient);
}

TEST_F(StoreBarrierTest, ALateRankFailsAtOnce) {
  auto told = PassAs({0, 1, 2}, kShort);
  EXPECT_THAT(PassAs({3}, kLong), Each(EndsWith(told[0])));
}

TEST_F(StoreBarrierTest, ALateRankZeroFailsAtOnce) {
  auto told = PassAs({1, 3}, kShort);
  EXPECT_THAT(PassAs({0}, kLong), Each(EndsWith(told[0])));
}

TEST_F(StoreBarrierTest, TheNextBarrierWorksAfterAFailedOne) {
  PassAs({0, 1, 2}, kShort);
  PassAs({3}, kLong);
  EXPECT_THAT(PassAs({0, 1, 2, 3}, kLong), Each("passed"));
}

TEST_F(StoreBarrierTest, OnlyTheKeysOfTheLastBarrierAreKept) {
  PassAs({0, 1, 2, 3}, kLong);
  size_t after_one = keys->size();
  PassAs({0, 1, 2}, kShort);
  PassAs({3}, kLong);
  for (int i = 0; i < 5; ++i) PassAs({0, 1, 2, 3}, kLong);
  EXPECT_EQ(keys->size(), after_one);
}

TEST_F(StoreBarrierTest, ARefusalReachesWaitingAndLateRanks) {
  for (int refuser : {0, 3}) {
    std::vector<Result<void>> told(4);
    std::vector<std::jthread> early;
    for (int r : {1, 2}) {
      early.emplace_back([&, r] { told[static_cast<size_t>(r)] = BarrierOf(r).Pass(kLong); });
    }
    BarrierOf(refuser).Refuse({ErrorCode::kMismatch, "rank " + std::to_string(refuser) + " does"});
    early.clear();
    int late = 3 - refuser;
    told[static_cast<size_t>(late)] = BarrierOf(late).Pass(kLong);
    for (int r : {1, 2, late}) {
      const Result<void>& one = told[static_cast<size_t>(r)];
      ASSERT_FALSE(one);
      EXPECT_EQ(one.error().code, ErrorCode::kMismatch);
      EXPECT_EQ(one.error().message, "rank " + std::to_string(refuser) + " does");
    }
  }
  EXPECT_THAT(PassAs({0, 1, 2, 3}, kLong), Each("passed"));
}

TEST_F(StoreBarrierTest, AStoreThatFailsIsAnErrorOfTheStore) {
  keys->FailWith({ErrorCode::kPeerLost, "store closed the connection"});
  for (int r : {0, 1}) {
    auto passed = BarrierOf(r).Pass(kLong);
    ASSERT_FALSE(passed);
    EXPECT_EQ(passed.error().code, ErrorCode::kProtocol);
    EXPECT_EQ(passed.error().message, "store closed the connection");
  }
}

// Store of a rank that stops before one of its requests.
class StoppingStore final : public MemoryStore {
 public:
  StoppingStore(std::shared_ptr<MemoryKeys> keys, int requests)
      : MemoryStore(std::move(keys)), left_(requests) {}

  Result<void> Set(std::string_view key, std::string_view value) override {
    return left_-- > 0 ? MemoryStore::Set(key, value) : kStopped;
  }
  Result<int64_t> Add(std::string_view key, int64_t delta) override {
    return left_-- > 0 ? MemoryStore::Add(key, delta) : kStopped;
  }

 private:
  inline static const Error kStopped{ErrorCode::kInvalid, "stopped"};
  int left_;
};

TEST_F(StoreBarrierTest, NoRankPassesAfterItsTimeout) {
  const std::vector<int> kNames{0, 1};
  for (int requests : {0, 1}) {
    std::string prefix = "stop_" + std::to_string(requests);
    StoppingStore stopping(keys, requests);
    EXPECT_FALSE(StoreBarrier(stopping, prefix, 1, kNames).Pass(kLong));
    auto passed = StoreBarrier(*stores[0], prefix, 0, kNames).Pass(kShort);
    if (requests == 0) {
      ASSERT_FALSE(passed);
      EXPECT_THAT(passed.error().message, EndsWith("missing: rank 1"));
    } else {
      EXPECT_TRUE(passed);
      EXPECT_THAT(keys->checks, IsEmpty()) << "the rank called the roll after its time-out";
    }
    keys->checks.clear();
  }
}

TEST_F(StoreBarrierTest, ALoneRankPassesAtOnce) {
  StoreBarrier barrier(*stores[0], "alone", 0, std::vector<int>{0});
  EXPECT_TRUE(barrier.Pass(kShort));
}

TEST(StoreBarrierOverTcpTest, AllMissingRanksAreNamedAndTheNextOnePasses) {
  store::ServerThread server;
  std::vector<std::string> told(4);
  RunRanks(4, [&](int r) {
    auto store = store::TcpStore::Connect("127.0.0.1", server.port());
    ASSERT_TRUE(store) << store.error().message;
    StoreBarrier barrier(**store, "b", r, std::vector<int>{0, 1, 2, 3});
    if (r == 3) {
      // Arrives after the others have timed out.
      std::string verdict = "b/0/verdict";
      ASSERT_TRUE((*store)->Wait(std::span(&verdict, 1), kLong));
    }
    if (r == 0) {
      std::vector<std::string> others{"b/0/arrived/1", "b/0/arrived/2"};
      ASSERT_TRUE((*store)->Wait(others, kLong));
    }
    auto first = barrier.Pass(r == 0 ? kShort : kLong);
    ASSERT_FALSE(first);
    told[static_cast<size_t>(r)] = first.error().message;
    EXPECT_TRUE(barrier.Pass(kLong));
  });
  EXPECT_THAT(told, Each(told[0]));
  EXPECT_THAT(told[0], EndsWith("missing: rank 3"));
}

// Store in whose first wait the agent reports a death.
class FatefulStore final : public store::TableStore {
 public:
  explicit FatefulStore(StatusPage& page) : TableStore(std::make_shared<Table>(page)) {}

 private:
  class Table final : public store::TableSource {
   public:
    explicit Table(StatusPage& page) : TableSource(DeathWatch(page)), page_(page) {}
    Result<void> Refresh(Session&, Purpose, TimePoint) override REQUIRES(mutex_) { return {}; }
    Result<void> Commit(Session&, std::vector<store::Change> changes) override REQUIRES(mutex_) {
      for (const store::Change& change : changes) table_.Apply(change);
      return {};
    }
    // Called by a wait before it sleeps.
    Duration LongestSleep() const override {
      if (!page_.has_peer_death()) page_.PublishPeerDeath("rank 1 was killed by SIGKILL");
      return Duration::max();
    }
    milliseconds LockTimeout() const override { return {}; }

   private:
    StatusPage& page_;
  };
};

TEST_F(StoreBarrierTest, ADeathEndsItForAll) {
  for (int rank : {0, 2}) {
    StatusPage page = *StatusPage::Create();
    FatefulStore store(page);
    auto passed = StoreBarrier(store, "d", rank, std::vector<int>{0, 1, 2}).Pass(kLong);
    ASSERT_FALSE(passed);
    EXPECT_EQ(passed.error().code, ErrorCode::kCancelled);
    EXPECT_THAT(passed.error().message, HasSubstr(": rank 1 was killed by SIGKILL; waited "));
  }
}

}  // namespace
}  // namespace rankrun::comm

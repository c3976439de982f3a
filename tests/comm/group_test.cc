#include "comm/group.h"

#include <gmock/gmock.h>

#include <memory>
#include <utility>
#include <vector>

#include "tests/comm/memory_store.h"
#include "tests/comm/ranks.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

// Does nothing, until told to fail.
struct FakeBackend : Backend {
  Result<void> AllReduce(const Tensor&, ReduceOp, const Call& call) override { return Do(call); }
  Result<void> Broadcast(const Tensor&, int, const Call& call) override { return Do(call); }
  Result<void> Barrier(const Call& call) override { return Do(call); }

  Result<void> Do(const Call& call) {
    calls.push_back(call);
    if (failure) return *failure;
    return {};
  }

  std::vector<Call> calls;
  std::optional<Error> failure;
};

struct GroupTest : testing::Test {
  std::unique_ptr<Group> Make(int global_rank, int world_size, FakeBackend** backend = nullptr) {
    auto store = std::make_unique<MemoryStore>(keys);
    auto barrier = std::make_unique<StoreBarrier>(*store, "g/barrier", global_rank, world_size);
    auto fake = std::make_unique<FakeBackend>();
    if (backend != nullptr) *backend = fake.get();
    return std::make_unique<Group>(Group::Identity{.global_rank = global_rank,
                                                   .world_size = world_size,
                                                   .timeout = std::chrono::seconds(60),
                                                   .key_prefix = "g"},
                                   std::move(store), std::move(barrier), std::move(fake));
  }

  static Error ErrorOf(Result<void> result) {
    EXPECT_FALSE(result);
    return result ? Error{ErrorCode::kCancelled, "no error"} : std::move(result).error();
  }

  std::shared_ptr<MemoryKeys> keys = std::make_shared<MemoryKeys>();
  std::vector<float> data = std::vector<float>(16);
};

TEST_F(GroupTest, BackendIsGivenTheTimeoutOfTheGroupOrOfTheCall) {
  FakeBackend* backend = nullptr;
  const auto group = Make(0, 2, &backend);
  ASSERT_TRUE(group->Barrier({}));
  ASSERT_TRUE(group->Barrier(milliseconds(7)));
  ASSERT_TRUE(group->Barrier(milliseconds::max()));
  EXPECT_EQ(backend->calls[0].timeout, std::chrono::seconds(60));
  EXPECT_EQ(backend->calls[1].timeout, milliseconds(7));
  EXPECT_EQ(backend->calls[2].timeout, std::chrono::hours(24 * 365));
}

TEST_F(GroupTest, AnEmptyTensorTakesItsPlaceInTheSequence) {
  FakeBackend* backend = nullptr;
  const auto group = Make(0, 2, &backend);
  std::vector<float> empty;
  ASSERT_TRUE(group->AllReduce(empty, ReduceOp::kSum, {}));
  ASSERT_TRUE(group->Barrier({}));
  ASSERT_EQ(backend->calls.size(), 1U) << "nothing to send for the empty one";
  EXPECT_EQ(backend->calls[0].tag, Tag({.kind = Operation::Kind::kBarrier, .number = 2}));
}

TEST_F(GroupTest, ABadArgumentLeavesTheGroupAsItWas) {
  FakeBackend* backend = nullptr;
  const auto group = Make(0, 2, &backend);
  EXPECT_EQ(ErrorOf(group->Broadcast(data, 2, {})).message,
            "Broadcast: source is rank 2: want 0..1");
  EXPECT_EQ(ErrorOf(group->Broadcast(data, -1, {})).code, ErrorCode::kInvalid);
  EXPECT_EQ(ErrorOf(group->Barrier(milliseconds(0))).message,
            "timeout is 0 ms: want at least 1 ms");
  Tensor nowhere(data);
  nowhere.data = nullptr;
  EXPECT_EQ(ErrorOf(group->AllReduce(nowhere, ReduceOp::kSum, {})).code, ErrorCode::kInvalid);
  EXPECT_EQ(group->state(), GroupState::kOk);
  EXPECT_TRUE(backend->calls.empty());
  ASSERT_TRUE(group->Barrier({}));
  EXPECT_EQ(backend->calls[0].tag, Tag({.kind = Operation::Kind::kBarrier, .number = 1}));
}

TEST_F(GroupTest, AFailureSaysWhereAndBreaksTheGroup) {
  FakeBackend* backend = nullptr;
  const auto group = Make(1, 4, &backend);
  ASSERT_TRUE(group->Barrier({}));
  backend->failure = Error{ErrorCode::kPeerLost, "lost rank 2"};
  const Error error = ErrorOf(group->AllReduce(data, ReduceOp::kSum, {}));
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_EQ(
      error.message,
      "AllReduce #2 (16 x float32, sum) of the world process group, rank 1 of 4: lost rank 2");
  EXPECT_EQ(group->state(), GroupState::kBroken);
  EXPECT_EQ(group->broken_reason(), "AllReduce #2 (16 x float32, sum): lost rank 2");
}

TEST_F(GroupTest, ABrokenGroupSaysSoAtOnceAndWhy) {
  FakeBackend* backend = nullptr;
  const auto group = Make(1, 4, &backend);
  backend->failure = Error{ErrorCode::kPeerLost, "lost rank 2"};
  ErrorOf(group->Barrier({}));
  const std::string why = "the process group is broken: Barrier #1: lost rank 2";
  EXPECT_THAT(ErrorOf(group->Broadcast(data, 0, {})).message,
              AllOf(StartsWith("Broadcast #2 "), EndsWith(why)));
  const Error error = ErrorOf(group->MonitoredBarrier({}));
  EXPECT_EQ(error.code, ErrorCode::kSystem);
  EXPECT_THAT(error.message, AllOf(StartsWith("MonitoredBarrier #1 of"), EndsWith(why)));
}

TEST_F(GroupTest, TheFirstFailureIsToldByAll) {
  FakeBackend *first = nullptr, *second = nullptr;
  const auto rank_1 = Make(1, 4, &first);
  const auto rank_3 = Make(3, 4, &second);
  first->failure = Error{ErrorCode::kPeerLost, "lost rank 2"};
  second->failure = Error{ErrorCode::kPeerLost, "lost rank 1"};
  ErrorOf(rank_1->Barrier({}));
  EXPECT_THAT(ErrorOf(rank_3->Barrier({})).message,
              EndsWith("lost rank 1; first to fail was rank 1: Barrier #1: lost rank 2"));
}

TEST_F(GroupTest, OneRanksTimeoutIsNotBlamedOnItsClosedConnections) {
  FakeBackend *first = nullptr, *second = nullptr;
  const auto slow = Make(0, 2, &first);
  const auto impatient = Make(1, 2, &second);
  first->failure = Error{ErrorCode::kPeerLost, "lost rank 1"};
  second->failure = Error{ErrorCode::kTimeout, "timed out"};
  ErrorOf(impatient->Barrier(milliseconds(40)));
  EXPECT_THAT(ErrorOf(slow->Barrier({})).message,
              EndsWith("lost rank 1; first to fail was rank 1: Barrier #1: timed out"));
}

TEST_F(GroupTest, AfterATimeoutTheSilentRanksAreNamed) {
  std::vector<std::string> told(3);
  RunRanks(3, [&](int r) {
    if (r == 1) return;
    FakeBackend* backend = nullptr;
    const auto group = Make(r, 3, &backend);
    backend->failure = Error{ErrorCode::kTimeout, "timed out"};
    told[static_cast<size_t>(r)] = ErrorOf(group->Barrier(milliseconds(40))).message;
  });
  EXPECT_THAT(told[0], HasSubstr("timed out; no word from rank 1"));
  EXPECT_THAT(told[2], HasSubstr("timed out; no word from rank 1"));
}

TEST_F(GroupTest, RanksThatCallDifferentThingsAreToldWhoCalledWhat) {
  std::vector<std::string> told(3);
  RunRanks(3, [&](int r) {
    FakeBackend* backend = nullptr;
    const auto group = Make(r, 3, &backend);
    backend->failure = Error{ErrorCode::kTimeout, "timed out"};
    std::vector<float> tensor(r == 2 ? 20U : 10U);
    told[static_cast<size_t>(r)] =
        ErrorOf(group->AllReduce(tensor, ReduceOp::kSum, std::chrono::seconds(10))).message;
  });
  for (const std::string& text : told) {
    EXPECT_THAT(text, HasSubstr("ranks 0, 1 in AllReduce #1 (10 x float32, sum), "
                                "rank 2 in AllReduce #1 (20 x float32, sum)"));
  }
}

TEST_F(GroupTest, AStoreThatIsGoneOnlyShortensTheText) {
  FakeBackend* backend = nullptr;
  const auto group = Make(1, 4, &backend);
  keys->FailWith({ErrorCode::kPeerLost, "store is gone"});
  backend->failure = Error{ErrorCode::kTimeout, "timed out"};
  EXPECT_THAT(ErrorOf(group->Barrier({})).message, EndsWith("rank 1 of 4: timed out"));
}

TEST_F(GroupTest, AFailedMonitoredBarrierDoesNotBreakTheGroup) {
  const auto group = Make(0, 2);
  const Error error = ErrorOf(group->MonitoredBarrier(milliseconds(20)));
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_THAT(error.message,
              AllOf(StartsWith("MonitoredBarrier #1 of the world process group, rank 0 of 2: "),
                    EndsWith("missing: rank 1")));
  EXPECT_EQ(group->state(), GroupState::kOk);
  EXPECT_TRUE(group->Barrier({}));
}

}  // namespace
}  // namespace rankrun::comm

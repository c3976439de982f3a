#include "comm/group/group.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rankrun/dist_error.h>

#include "base/status/status_page.h"
#include "comm/group/failure_time.h"
#include "store/clients/tcp_store.h"
#include "tests/comm/group/group_fixture.h"
#include "tests/comm/ranks.h"
#include "tests/store/server/server_thread.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(GroupTest, BackendIsGivenTheTimeoutOfTheGroupOrOfTheCall) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  ASSERT_TRUE(group->Barrier({}));
  ASSERT_TRUE(group->Barrier({milliseconds(7)}));
  ASSERT_TRUE(group->Barrier({milliseconds::max()}));
  EXPECT_EQ(backend->calls[0].timeout, std::chrono::seconds(60));
  EXPECT_EQ(backend->calls[1].timeout, milliseconds(7));
  EXPECT_EQ(backend->calls[2].timeout, std::chrono::hours(24 * 365));
}

TEST_F(GroupTest, AnEmptyTensorTakesItsPlaceInTheSequence) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  std::vector<float> empty;
  ASSERT_TRUE(group->AllReduce(empty, ReduceOp::kSum, {}));
  ASSERT_TRUE(group->Barrier({}));
  ASSERT_EQ(backend->calls.size(), 2U);
  EXPECT_EQ(backend->calls[1].operation.number, 2U);
}

TEST_F(GroupTest, ABadArgumentReachesTheOthersAndLeavesTheGroupUsable) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  EXPECT_EQ(ErrorOf(group->Broadcast(data, GroupRank{2}, {})).message,
            "Broadcast of the world process group, rank 0 of 2: there is no group rank 2: want "
            "0..1");
  EXPECT_EQ(ErrorOf(group->Broadcast(data, GlobalRank{-1}, {})).code, ErrorCode::kInvalid);
  EXPECT_THAT(ErrorOf(group->Barrier({milliseconds(0)})).message,
              EndsWith("timeout is 0 ms: want at least 1 ms"));
  Tensor nowhere(data);
  nowhere.data = nullptr;
  EXPECT_EQ(ErrorOf(group->AllReduce(nowhere, ReduceOp::kSum, {})).code, ErrorCode::kInvalid);
  EXPECT_EQ(group->state(), GroupState::kOk);
  EXPECT_TRUE(backend->calls.empty());
  ASSERT_EQ(backend->refused.size(), 4U);
  EXPECT_EQ(backend->refused[0],
            "Broadcast #1 (16 x float32): there is no group rank 2: want 0..1");
  ASSERT_TRUE(group->Barrier({}));
  EXPECT_EQ(backend->calls[0].operation.number, 5U) << "refused calls count";
}

TEST_F(GroupTest, WorkRunsInOrderAndDelaysLaterCalls) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  std::vector<Work> works;
  for (int i = 0; i < 100; ++i) works.push_back(*group->AllReduce(data, ReduceOp::kSum, kAsync));
  ASSERT_TRUE(group->Barrier({}));
  ASSERT_EQ(backend->calls.size(), 101U);
  for (size_t i = 0; i < works.size(); ++i) {
    EXPECT_TRUE(works[i].IsSuccess());
    EXPECT_EQ(works[i].sequence(), i + 1);
    EXPECT_EQ(backend->calls[i].operation.number, i + 1);
  }
}

TEST_F(GroupTest, ARefusedAsynchronousCallDoesNotWait) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  std::promise<void> refused;
  backend->in_call = [wait = refused.get_future().share()] { wait.wait(); };
  Work before = *group->AllReduce(data, ReduceOp::kSum, kAsync);
  EXPECT_EQ(ErrorOf(group->Broadcast(data, GroupRank{2}, kAsync)).code, ErrorCode::kInvalid);
  EXPECT_FALSE(before.IsCompleted());
  refused.set_value();
  ASSERT_TRUE(group->Barrier({}));
  EXPECT_EQ(backend->refused.size(), 1U);
}

TEST_F(GroupTest, AnErrorOfWorkIsReturnedByItsWait) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  backend->failure = Error{ErrorCode::kPeerLost, "lost rank 1"};
  Work work = *group->AllReduce(data, ReduceOp::kSum, kAsync);
  EXPECT_THROW(work.Wait(), DistNetworkError);
  EXPECT_THROW(work.WaitFor(milliseconds(1)), DistNetworkError);
  EXPECT_TRUE(work.IsCompleted());
  EXPECT_FALSE(work.IsSuccess());
  EXPECT_NE(work.exception(), nullptr);
  EXPECT_EQ(group->state(), GroupState::kBroken);
  EXPECT_THAT(backend->aborted, EndsWith("lost rank 1"));
}

struct GroupEndTimingTest : GroupTest {};

TEST_F(GroupEndTimingTest, ACallThatHasFailedWaitsForNoReports) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  backend->failure = Error{ErrorCode::kTimeout, "timed out"};
  std::jthread ender([&] {
    // The call has reported its time-out, and waits 1 s for the reports of others.
    ASSERT_TRUE(MemoryStore(keys).Get("g/failed/0", std::chrono::seconds(60)));
    group->EndCalls("aborted the group");
  });
  const TimePoint began = MonotonicClock().Now();
  ErrorOf(group->Barrier({}));
  EXPECT_LT(MonotonicClock().Now() - began, milliseconds(800));
  EXPECT_EQ(group->broken_reason(), "rank 0 aborted the group");
  EXPECT_EQ(backend->aborted, "rank 0 aborted the group");
}

TEST_F(GroupTest, AnEndAfterAFailureKeepsTheFirstReason) {
  FakeBackend* backend = nullptr;
  auto group = Make(0, 2, &backend);
  backend->failure = Error{ErrorCode::kPeerLost, "lost rank 1"};
  ErrorOf(group->Barrier({}));
  group->End("aborted the group");
  EXPECT_THAT(group->broken_reason(), EndsWith("lost rank 1"));
}

TEST_F(GroupTest, ThenRunsItsFunctionOnce) {
  auto group = Make(0, 2);
  std::atomic<int> done = 0;
  Work work = *group->AllReduce(data, ReduceOp::kSum, kAsync);
  work.Then([&] { done += 1; });
  work.Wait();
  work.Then([&] { done += 1; });
  Work().Then([&] { done += 1; });
  ASSERT_TRUE(group->Barrier({}));
  EXPECT_EQ(done, 3);
}

TEST_F(GroupTest, ErrorsNameTheGlobalRankOfTheRoot) {
  FakeBackend* backend = nullptr;
  auto group = MakeOf({1, 3}, 0, std::chrono::seconds(60), &backend);
  backend->failure = Error{ErrorCode::kInvalid, "no"};
  EXPECT_THAT(ErrorOf(group->Broadcast(data, GroupRank{1}, {})).message,
              StartsWith("Broadcast #1 (16 x float32 from rank 3) of "));
  std::vector<Tensor> outputs{data};
  EXPECT_THAT(ErrorOf(group->Gather(outputs, data, GroupRank{1}, {})).message,
              EndsWith("outputs is not empty: want that on the root, rank 3, only"));
}

TEST_F(GroupTest, ASubGroupsErrorsNameTheGlobalRankOfThisOne) {
  EXPECT_EQ(PlaceIn({.global_rank = 5,
                     .global_ranks = {2, 5},
                     .group_rank = 1,
                     .timeout = milliseconds(1),
                     .key_prefix = "g",
                     .name = "group_1",
                     .description = "pair"}),
            "process group \"pair\", global rank 5 (1 of 2)");
}

TEST_F(GroupTest, AMessageOfAnotherSizeOrTypeIsAnErrorThatNamesBoth) {
  auto group = Make(0, 2);
  std::vector<int64_t> sent{7, 8}, longer(3);
  ASSERT_TRUE(group->ISend(sent, GroupRank{0}, 1, {}));
  Work work = *group->IRecv(longer, GroupRank{0}, 1, {});
  EXPECT_THROW(work.Wait(), DistError);
  EXPECT_EQ(group->state(), GroupState::kOk);
}

TEST_F(GroupTest, OnARankThatIsNoMemberNothingHappens) {
  GroupIdentity identity{.global_rank = 0,
                         .global_ranks = {1, 3},
                         .group_rank = -1,
                         .timeout = milliseconds(10),
                         .key_prefix = "g",
                         .name = "group_1",
                         .description = "pair"};
  Group silent(identity);
  EXPECT_TRUE(silent.AllReduce(data, ReduceOp::kSum, {})->IsCompleted());
  EXPECT_TRUE(silent.MonitoredBarrier({}, true));
  EXPECT_EQ(*silent.Recv(data, Source(), 0, {}), -1);
  identity.is_strict = true;
  Group strict(identity);
  EXPECT_EQ(ErrorOf(strict.Barrier({})).message,
            "Barrier of process group \"pair\": does nothing here, as rank 0 is no member of it");
}

TEST_F(GroupTest, AFailureNamesItsCallAndBreaksTheGroup) {
  FakeBackend* backend = nullptr;
  auto group = Make(1, 4, &backend);
  ASSERT_TRUE(group->Barrier({}));
  backend->failure = Error{ErrorCode::kPeerLost, "lost rank 2"};
  Error error = ErrorOf(group->AllReduce(data, ReduceOp::kSum, {}));
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_EQ(
      error.message,
      "AllReduce #2 (16 x float32, sum) of the world process group, rank 1 of 4: lost rank 2");
  EXPECT_EQ(group->state(), GroupState::kBroken);
  EXPECT_EQ(group->broken_reason(), "AllReduce #2 (16 x float32, sum): lost rank 2");
}

TEST_F(GroupTest, ACallThatFailsOnAnotherRankHasNoResultHere) {
  FakeBackend* backend = nullptr;
  auto group = Make(1, 2, &backend);
  backend->fails_elsewhere = Error{ErrorCode::kPeerLost, "rank 0 has given up AllReduce #1"};
  EXPECT_THAT(ErrorOf(group->AllReduce(data, ReduceOp::kSum, {})).message,
              HasSubstr("rank 0 has given up AllReduce #1"));
  EXPECT_EQ(backend->calls.size(), 1U) << "its data was complete";
  EXPECT_EQ(group->state(), GroupState::kBroken);
}

TEST_F(GroupTest, ABrokenGroupFailsAtOnceWithTheReason) {
  FakeBackend* backend = nullptr;
  auto group = Make(1, 4, &backend);
  backend->failure = Error{ErrorCode::kPeerLost, "lost rank 2"};
  ErrorOf(group->Barrier({}));
  std::string why = "the process group is broken: Barrier #1: lost rank 2";
  EXPECT_THAT(ErrorOf(group->Broadcast(data, GlobalRank{0}, {})).message,
              AllOf(StartsWith("Broadcast #2 "), EndsWith(why)));
  Error error = ErrorOf(group->MonitoredBarrier({}, true));
  EXPECT_EQ(error.code, ErrorCode::kSystem);
  EXPECT_THAT(error.message, AllOf(StartsWith("MonitoredBarrier #1 of"), EndsWith(why)));
  page.PublishPeerDeath("rank 2 was killed by SIGKILL");  // after the failure
  EXPECT_THAT(ErrorOf(group->Barrier({})).message,
              EndsWith(why + "; rank 2 was killed by SIGKILL"));
}

TEST_F(GroupTest, AllRanksReportTheFirstFailure) {
  FakeBackend *first = nullptr, *second = nullptr;
  auto rank_1 = Make(1, 4, &first);
  auto rank_3 = Make(3, 4, &second);
  first->failure = Error{ErrorCode::kPeerLost, "lost rank 2"};
  second->failure = Error{ErrorCode::kPeerLost, "lost rank 1"};
  second->in_call = [&] { ErrorOf(rank_1->Barrier({})); };
  EXPECT_THAT(ErrorOf(rank_3->Barrier({})).message,
              EndsWith("lost rank 1; first to fail was rank 1: Barrier #1: lost rank 2"));
}

TEST_F(GroupTest, AnEqualFirstFailureIsNotRepeated) {
  FakeBackend *first = nullptr, *second = nullptr, *third = nullptr;
  auto rank_0 = Make(0, 4, &first);
  auto rank_1 = Make(1, 4, &second);
  auto rank_3 = Make(3, 4, &third);
  first->failure = Error{ErrorCode::kPeerLost, "lost rank 2"};
  second->failure = first->failure;
  second->in_call = [&] { ErrorOf(rank_0->Barrier({})); };
  third->in_call = [&] {
    EXPECT_THAT(ErrorOf(rank_1->Barrier({})).message, EndsWith("rank 1 of 4: lost rank 2"));
    third->failure = Error{ErrorCode::kPeerLost, "rank 0: " + rank_0->broken_reason()};
  };
  EXPECT_THAT(ErrorOf(rank_3->Barrier({})).message, EndsWith(": rank 0: Barrier #1: lost rank 2"));
}

TEST_F(GroupTest, OneRanksTimeoutIsNotBlamedOnItsClosedConnections) {
  FakeBackend *first = nullptr, *second = nullptr;
  auto slow = Make(0, 2, &first);
  auto impatient = Make(1, 2, &second);
  first->failure = Error{ErrorCode::kPeerLost, "lost rank 1"};
  second->failure = Error{ErrorCode::kTimeout, "timed out"};
  first->in_call = [&] { ErrorOf(impatient->Barrier({milliseconds(40)})); };
  EXPECT_THAT(ErrorOf(slow->Barrier({})).message,
              EndsWith("lost rank 1; first to fail was rank 1: Barrier #1: timed out"));
}

TEST_F(GroupTest, ALateRankHearsSinceWhenTheCallHasFailed) {
  FakeBackend* backend = nullptr;
  auto late = Make(1, 2, &backend);
  backend->failure = Error{ErrorCode::kTimeout, "timed out: rank 1 has not called it"};
  MemoryStore store(keys);
  const WallTime failed = std::chrono::system_clock::now() - std::chrono::seconds(75);
  ASSERT_TRUE(
      store.Set("g/first_failure",
                WithTime("rank 0: Barrier #1: timed out: rank 1 has not called it", failed)));
  EXPECT_THAT(
      ErrorOf(late->Barrier({})).message,
      EndsWith("rank 1 of 2: failed 75.0 s before this rank came: rank 0: timed out: rank 1 "
               "has not called it"));
}

TEST_F(GroupTest, AFailureInALaterCallIsNotThatOfThisOne) {
  FakeBackend* backend = nullptr;
  auto behind = Make(1, 2, &backend);
  backend->failure = Error{ErrorCode::kPeerLost, "lost rank 0"};
  MemoryStore store(keys);
  const WallTime failed = std::chrono::system_clock::now() - std::chrono::seconds(75);
  ASSERT_TRUE(store.Set("g/first_failure", WithTime("rank 0: Barrier #2: timed out", failed)));
  EXPECT_THAT(ErrorOf(behind->Barrier({})).message,
              EndsWith("lost rank 0; first to fail was rank 0: Barrier #2: timed out"));
}

TEST_F(GroupTest, AfterATimeoutTheSilentRanksAreNamed) {
  std::vector<std::string> told(3);
  RunRanks(3, [&](int r) {
    if (r == 1) return;
    FakeBackend* backend = nullptr;
    auto group = Make(r, 3, &backend);
    backend->failure = Error{ErrorCode::kTimeout, "timed out"};
    told[static_cast<size_t>(r)] = ErrorOf(group->Barrier({milliseconds(1'000)})).message;
  });
  told.erase(told.begin() + 1);
  EXPECT_THAT(told, Each(HasSubstr("timed out; no report from rank 1")));
}

TEST_F(GroupTest, RanksWithDifferentCallsGetTheCallOfEachRank) {
  std::vector<std::string> told(3);
  RunRanks(3, [&](int r) {
    FakeBackend* backend = nullptr;
    auto group = Make(r, 3, &backend);
    backend->failure = Error{ErrorCode::kTimeout, "timed out"};
    std::vector<float> tensor(r == 2 ? 20U : 10U);
    told[static_cast<size_t>(r)] =
        ErrorOf(group->AllReduce(tensor, ReduceOp::kSum, {milliseconds(10'000)})).message;
  });
  for (const std::string& text : told) {
    EXPECT_THAT(text, HasSubstr("ranks 0, 1 in AllReduce #1 (10 x float32, sum), "
                                "rank 2 in AllReduce #1 (20 x float32, sum)"));
  }
}

TEST_F(GroupTest, AStoreThatIsGoneOnlyShortensTheText) {
  FakeBackend* backend = nullptr;
  auto group = Make(1, 4, &backend);
  keys->FailWith({ErrorCode::kPeerLost, "store is gone"});
  backend->failure = Error{ErrorCode::kTimeout, "timed out"};
  EXPECT_THAT(ErrorOf(group->Barrier({})).message, EndsWith("rank 1 of 4: timed out"));
}

TEST_F(GroupTest, AFailureIsPublishedWhileAnotherThreadWaitsInTheStore) {
  const store::ServerThread server;
  auto connect = [&] { return *store::TcpStore::Connect("127.0.0.1", server.port()); };
  auto other = connect();
  FakeBackend* backend = nullptr;
  auto group = MakeOn(connect(), {0, 1}, 0, std::chrono::seconds(60), &backend);
  backend->has_messages = true;
  auto barrier = std::async(
      std::launch::async, [&] { return group->MonitoredBarrier(std::chrono::seconds(60), true); });
  ASSERT_TRUE(other->Get("g/barrier/0/arrived/0", std::chrono::seconds(60)));
  ErrorOf(group->Recv(data, GroupRank{1}, 0, milliseconds(20)));
  EXPECT_TRUE(*other->Check(std::vector<std::string>{"g/first_failure"}));
  EXPECT_EQ(barrier.wait_for(milliseconds(0)), std::future_status::timeout);
  ASSERT_TRUE(other->Set("g/barrier/0/verdict", "ok"));
  EXPECT_TRUE(barrier.get());
}

TEST_F(GroupTest, AFailedMonitoredBarrierDoesNotBreakTheGroup) {
  auto group = Make(0, 2);
  Error error = ErrorOf(group->MonitoredBarrier(milliseconds(20), true));
  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_THAT(error.message,
              AllOf(StartsWith("MonitoredBarrier #1 of the world process group, rank 0 of 2: "),
                    EndsWith("missing: rank 1")));
  EXPECT_EQ(group->state(), GroupState::kOk);
  EXPECT_TRUE(group->Barrier({}));
}

}  // namespace
}  // namespace rankrun::comm

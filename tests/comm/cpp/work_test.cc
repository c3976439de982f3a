#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <rankrun/dist_error.h>
#include <rankrun/future.h>
#include <rankrun/work.h>

#include "comm/async/work_handle.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

Work WorkOf(uint64_t sequence, const std::shared_ptr<WorkState>& state) {
  return {sequence, std::make_shared<WorkHandle>(state, std::nullopt)};
}

struct WorkTest : testing::Test {
  std::shared_ptr<WorkState> state = std::make_shared<WorkState>();
  Work work = WorkOf(7, state);
};

TEST_F(WorkTest, AWaitForThatTimesOutReturnsFalse) {
  for (milliseconds limit : {milliseconds(0), milliseconds(1)}) {
    EXPECT_FALSE(work.WaitFor(limit));
    EXPECT_FALSE(work.IsCompleted());
    EXPECT_EQ(work.exception(), nullptr);
  }
  state->Finish({}, 3);
  EXPECT_TRUE(work.WaitFor(milliseconds(0)));
  EXPECT_TRUE(work.IsSuccess());
  EXPECT_EQ(work.source_global_rank(), 3);
}

TEST_F(WorkTest, AWaitWithALimitThrowsAfterIt) {
  try {
    work.Wait(milliseconds(1));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const DistTimeoutError& error) {
    EXPECT_STREQ(error.what(), "operation #7 is not complete after 0.001 s; it goes on");
  }
  EXPECT_FALSE(work.IsCompleted());
  state->Finish({});
  work.Wait(milliseconds(0));
  EXPECT_TRUE(work.IsSuccess());
}

TEST_F(WorkTest, ALateErrorIsThrownByTheNextWait) {
  EXPECT_FALSE(work.WaitFor(milliseconds(1)));
  state->Finish(Error{ErrorCode::kTimeout, "timed out"});
  EXPECT_THROW(work.WaitFor(milliseconds::max()), DistTimeoutError);
}

TEST_F(WorkTest, ItsFutureEndsWithIt) {
  Future<void> future = FutureOf(work);
  EXPECT_TRUE(state->awaited_since()) << "the time-out of a message starts";
  auto next = future.Then([](const Future<void>& ended) { return ended.exception() == nullptr; });
  EXPECT_FALSE(next.done());
  state->Finish({});
  EXPECT_TRUE(future.done());
  EXPECT_TRUE(next.Wait());
  EXPECT_TRUE(FutureOf(Work()).done());
}

TEST_F(WorkTest, ItsFutureHasItsError) {
  Future<void> future = FutureOf(work);
  state->Finish(Error{ErrorCode::kMismatch, "another call"});
  EXPECT_THROW(future.Wait(), DistMismatchError);
}

TEST(WorkResultTest, HasTheKindOfTheError) {
  const std::pair<ErrorCode, WorkResult> kinds[] = {
      {ErrorCode::kTimeout, WorkResult::kTimeout},
      {ErrorCode::kPeerLost, WorkResult::kCommError},
      {ErrorCode::kCancelled, WorkResult::kCommError},
      {ErrorCode::kProtocol, WorkResult::kCommError},
      {ErrorCode::kMismatch, WorkResult::kUnknown},
      {ErrorCode::kInvalid, WorkResult::kUnknown},
  };
  for (const auto& [code, wanted] : kinds) {
    auto state = std::make_shared<WorkState>();
    Work work = WorkOf(1, state);
    EXPECT_EQ(work.result(), std::nullopt);
    state->Finish(Error{code, "it failed"});
    EXPECT_EQ(work.result(), wanted);
  }
  EXPECT_EQ(Work().result(), WorkResult::kSuccess);
}

struct CoalesceTest : testing::Test {
  std::vector<std::shared_ptr<WorkState>> states{
      std::make_shared<WorkState>(), std::make_shared<WorkState>(), std::make_shared<WorkState>()};
  std::vector<Work> parts{WorkOf(1, states[0]), WorkOf(2, states[1]), Work(3),
                          WorkOf(4, states[2])};
  Work all = Coalesce(parts);
};

TEST_F(CoalesceTest, EndsWithTheLastPartInAnyOrder) {
  int calls = 0;
  all.Then([&] { ++calls; });
  for (int i : {1, 2, 0}) {
    EXPECT_FALSE(all.IsCompleted());
    EXPECT_FALSE(all.WaitFor(milliseconds(1)));
    EXPECT_EQ(calls, 0);
    states[static_cast<size_t>(i)]->Finish({}, 7);
  }
  EXPECT_TRUE(all.IsSuccess());
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(all.sequence(), 0U);
  EXPECT_EQ(all.source_global_rank(), -1);
  EXPECT_NO_THROW(all.Wait());
}

TEST_F(CoalesceTest, ThrowsTheFirstErrorInTheOrderOfThePartsAfterTheLast) {
  states[2]->Finish(Error{ErrorCode::kTimeout, "third"});
  states[1]->Finish(Error{ErrorCode::kMismatch, "second"});
  EXPECT_EQ(all.exception(), nullptr);
  EXPECT_FALSE(all.WaitFor(milliseconds(0)));
  states[0]->Finish({});
  EXPECT_FALSE(all.IsSuccess());
  EXPECT_THROW(all.Wait(), DistMismatchError);
}

TEST_F(CoalesceTest, WaitIsForAllPartsThoughOneHasFailed) {
  states[0]->Finish(Error{ErrorCode::kMismatch, "first"});
  std::atomic<bool> all_ended = false;
  std::jthread rest([&] {
    while (!states[2]->awaited_since()) std::this_thread::yield();
    states[1]->Finish({});
    all_ended = true;
    states[2]->Finish({});
  });
  EXPECT_THROW(all.Wait(), DistMismatchError);
  EXPECT_TRUE(all_ended);
}

TEST_F(CoalesceTest, AWaitIsOneForEachPart) {
  EXPECT_FALSE(all.WaitFor(milliseconds(0)));
  for (const auto& state : states) EXPECT_TRUE(state->awaited_since());
}

TEST_F(CoalesceTest, AWaitingThreadWakesUp) {
  std::jthread waiter([&] { all.Wait(); });
  std::jthread second([&] { EXPECT_TRUE(Coalesce({&all, 1}).WaitFor(milliseconds::max())); });
  for (const auto& state : states) state->Finish({});
}

TEST_F(CoalesceTest, OfCompleteWorkIsComplete) {
  EXPECT_TRUE(Coalesce({}).IsSuccess());
  EXPECT_TRUE(Coalesce({&parts[2], 1}).IsSuccess());
  for (const auto& state : states) state->Finish({});
  EXPECT_TRUE(Coalesce(parts).IsSuccess());
}

}  // namespace
}  // namespace rankrun::comm

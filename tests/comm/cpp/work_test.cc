#include <gtest/gtest.h>

#include <memory>

#include <rankrun/dist_error.h>
#include <rankrun/work.h>

#include "comm/async/work_state.h"

namespace rankrun::comm {
namespace {

using std::chrono::milliseconds;

struct WorkTest : testing::Test {
  std::shared_ptr<WorkState> state = std::make_shared<WorkState>();
  Work work{7, state};
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

TEST_F(WorkTest, ALateErrorIsThrownByTheNextWait) {
  EXPECT_FALSE(work.WaitFor(milliseconds(1)));
  state->Finish(Error{ErrorCode::kTimeout, "timed out"});
  EXPECT_THROW(work.WaitFor(milliseconds::max()), DistTimeoutError);
}

}  // namespace
}  // namespace rankrun::comm

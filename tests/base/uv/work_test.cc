#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"
#include "tests/base/support.h"

namespace rankrun {
namespace {

TEST(WorkTest, WorksElsewhereAndIsDoneOnTheLoop) {
  Loop loop;
  bool worked_on_loop = true;
  bool done_on_loop = false;
  RunInPool(
      loop, [&] { worked_on_loop = loop.IsOnLoop(); }, [&] { done_on_loop = loop.IsOnLoop(); });
  EXPECT_TRUE(loop.RunUntil([&] { return done_on_loop; }, test::kLong));
  EXPECT_FALSE(worked_on_loop);
}

TEST(WorkTest, WorkThatBlocksDoesNotBlockTheLoop) {
  Loop loop;
  std::promise<void> release;
  bool done = false;
  bool turned = false;
  RunInPool(
      loop, [&] { release.get_future().wait(); }, [&] { done = true; });
  loop.Post([&] { turned = true; });
  EXPECT_TRUE(loop.RunUntil([&] { return turned; }, test::kLong));
  EXPECT_FALSE(done);
  release.set_value();
  EXPECT_TRUE(loop.RunUntil([&] { return done; }, test::kLong));
}

TEST(WorkTest, EveryJobIsDoneOnceAfterItsWork) {
  Loop loop;
  std::atomic<int> worked = 0;
  int done = 0;
  for (int i = 0; i < 200; ++i) {
    RunInPool(
        loop, [&] { worked += 1; }, [&] { done += 1; });
  }
  EXPECT_EQ(done, 0);
  EXPECT_TRUE(loop.RunUntil([&] { return done == 200; }, test::kLong));
  EXPECT_EQ(worked, 200);
}

TEST(WorkTest, CapturesAreReleasedAfterDone) {
  Loop loop;
  auto token = std::make_shared<int>();
  bool done = false;
  RunInPool(
      loop, [token] {}, [token, &done] { done = true; });
  EXPECT_TRUE(loop.RunUntil([&] { return done; }, test::kLong));
  EXPECT_EQ(token.use_count(), 1);
}

}  // namespace
}  // namespace rankrun

#include "comm/async/work_queue.h"

#include <gmock/gmock.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "comm/async/progress_thread.h"

namespace rankrun::comm {
namespace {

using testing::HasSubstr;

// Makes every start of a thread fail while it lives, because the default stack
// does not fit into the address space.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, size_t{1} << 47);
    EXPECT_EQ(pthread_setattr_default_np(&attributes), 0);
    pthread_attr_destroy(&attributes);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

bool IsBlocked(int number) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, number) != 0;
}

TEST(WorkQueueTest, WithoutAThreadATaskIsDropped) {
  WorkQueue queue;
  ProgressThread progress_thread([] { return false; });
  int done = 0;
  {
    NoThreads none;
    auto pushed = queue.Push([&] { done += 1; });
    ASSERT_FALSE(pushed);
    EXPECT_THAT(pushed.error().message, HasSubstr("start a thread: "));
    EXPECT_FALSE(queue.busy());
    EXPECT_EQ(progress_thread.Wake().error().code, ErrorCode::kExhausted);
    EXPECT_FALSE(IsBlocked(SIGUSR2));
  }
  EXPECT_TRUE(queue.Push([&] { done += 10; }));
  queue.Stop();
  EXPECT_EQ(done, 10);
  EXPECT_TRUE(progress_thread.Wake());
}

TEST(WorkQueueTest, NothingIsFirstWhileAnotherThreadRunsATask) {
  WorkQueue queue;
  EXPECT_FALSE(queue.RunFirst()) << "there is no task";
  std::atomic<bool> has_begun = false, may_end = false;
  ASSERT_TRUE(queue.Push([&] {
    has_begun = true;
    has_begun.notify_all();
    may_end.wait(false);
  }));
  has_begun.wait(false);
  std::atomic<int> done = 0;
  ASSERT_TRUE(queue.Push([&] { done += 1; }));
  EXPECT_FALSE(queue.RunFirst());
  EXPECT_EQ(done, 0);
  may_end = true;
  may_end.notify_all();
  queue.Stop();
  EXPECT_EQ(done, 1);
}

TEST(WorkQueueTest, TasksThatAWaitingThreadRunsKeepTheirOrder) {
  WorkQueue queue;
  std::vector<int> order;
  for (int i = 0; i < 1'000; ++i) {
    ASSERT_TRUE(queue.Push([&, i] { order.push_back(i); }));
    if (i % 3 != 0) continue;
    while (queue.busy()) queue.RunFirst();
    EXPECT_EQ(order.size(), static_cast<size_t>(i + 1));
  }
  queue.Stop();
  EXPECT_EQ(order.size(), 1'000u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(ProgressThreadTest, RunsWhileThereIsMoreAndThenWaitsForTheNextWake) {
  std::atomic<int> left = 3, calls = 0;
  ProgressThread progress_thread([&] {
    calls += 1;
    calls.notify_all();
    return --left > 0;
  });
  ASSERT_TRUE(progress_thread.Wake());
  for (int seen = 0; seen < 3; seen = calls) calls.wait(seen);
  left = 1;
  ASSERT_TRUE(progress_thread.Wake());
  for (int seen = 3; seen < 4; seen = calls) calls.wait(seen);
  progress_thread.Stop();
  EXPECT_EQ(calls, 4);
}

}  // namespace
}  // namespace rankrun::comm

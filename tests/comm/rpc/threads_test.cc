#include "comm/rpc/threads.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <time.h>

#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace rankrun::comm::rpc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::unique_ptr<Threads> Make(int max_tasks) {
  auto threads = Threads::Make(max_tasks);
  EXPECT_TRUE(threads) << threads.error().message;
  return *std::move(threads);
}

TimePoint Soon() { return MonotonicClock().Now() + seconds(60); }

double SecondsOfThisThread() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Source that has data when its eventfd is set, and makes one task of it.
class Bell final : public Source {
 public:
  explicit Bell(Task task, bool is_always_set = false)
      : fd_(eventfd(is_always_set ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK)),
        task_(std::move(task)),
        is_always_set_(is_always_set) {}
  void Ring() { eventfd_write(fd_.get(), 1); }
  int fd() const override { return fd_.get(); }
  bool Move(std::vector<Task>& tasks) override {
    moves += 1;
    if (is_always_set_) return true;
    eventfd_t value = 0;
    if (eventfd_read(fd_.get(), &value) != 0) return false;
    tasks.push_back(task_);
    return true;
  }
  std::atomic<int> moves = 0;

 private:
  const Fd fd_;
  const Task task_;
  const bool is_always_set_;
};

TEST(PollRightTest, OneThreadHasItAtATime) {
  PollRight right;
  auto mine = right.Take();
  ASSERT_TRUE(mine);
  EXPECT_FALSE(right.Take());
  EXPECT_TRUE(PollRight::IsTaken(right.Look()));
  right.Release(*mine);
  EXPECT_TRUE(right.Take());
}

TEST(PollRightTest, ALentRightComesBackUnlessAnotherTakesIt) {
  PollRight right;
  PollRight::Ticket lent = right.Lend(*right.Take());
  auto mine = right.TakeBack(lent);
  ASSERT_TRUE(mine);
  EXPECT_FALSE(right.TakeBack(lent));
  lent = right.Lend(*mine);
  auto other = right.Take();
  ASSERT_TRUE(other);
  EXPECT_FALSE(right.TakeBack(lent));
  right.Release(*other);
  EXPECT_FALSE(right.TakeBack(lent)) << "a ticket counts once";
}

TEST(RpcThreadsTest, ATaskMayWaitForTheNextOne) {
  auto threads = Make(4);
  for (int i = 0; i < 200; ++i) {
    auto first = std::make_shared<std::promise<void>>();
    auto second = std::make_shared<std::promise<void>>();
    auto first_ran = first->get_future();
    threads->Run([first, second] {
      second->get_future().wait();
      first->set_value();
    });
    threads->Run([second] { second->set_value(); });
    ASSERT_EQ(first_ran.wait_for(seconds(60)), std::future_status::ready) << i;
  }
}

TEST(RpcThreadsTest, NoMoreTasksRunAtOnceThanMay) {
  auto threads = Make(3);
  std::atomic<int> now = 0, most = 0;
  std::latch all(300);
  for (int i = 0; i < 300; ++i) {
    threads->Run([&] {
      int here = ++now;
      for (int seen = most; here > seen && !most.compare_exchange_weak(seen, here);) {
      }
      std::this_thread::yield();
      --now;
      all.count_down();
    });
  }
  all.wait();
  threads.reset();
  EXPECT_LE(most, 3);
}

TEST(RpcThreadsTest, TasksThatWaitLeaveTheirPlaceToOthers) {
  auto threads = Make(2);
  std::latch together(40), all(40);
  for (int i = 0; i < 40; ++i) {
    threads->Run([&] {
      HookedWait wait;
      together.arrive_and_wait();
      all.count_down();
    });
  }
  all.wait();
  threads.reset();
}

TEST(RpcThreadsTest, SomebodyPollsWhileAllTasksRun) {
  auto threads = Make(2);
  std::promise<void> released;
  std::shared_future<void> release = released.get_future().share();
  std::latch running(2);
  for (int i = 0; i < 2; ++i) {
    threads->Run([&] {
      running.count_down();
      release.wait();
    });
  }
  running.wait();
  auto bell = std::make_shared<Bell>([] {});
  ASSERT_TRUE(threads->Add(bell));
  bell->Ring();
  TimePoint deadline = Soon();
  while (bell->moves == 0 && MonotonicClock().Now() < deadline) std::this_thread::yield();
  EXPECT_GT(bell->moves, 0);
  released.set_value();
  threads.reset();  // before what its tasks use
}

TEST(RpcThreadsTest, ALongTaskOfTheThreadThatPollsDelaysNoOther) {
  auto threads = Make(4);
  std::promise<void> released, entered, done;
  auto first = std::make_shared<Bell>([&] {
    entered.set_value();
    released.get_future().wait();
  });
  auto second = std::make_shared<Bell>([&] { done.set_value(); });
  ASSERT_TRUE(threads->Add(first));
  ASSERT_TRUE(threads->Add(second));
  first->Ring();
  entered.get_future().wait();
  second->Ring();
  EXPECT_EQ(done.get_future().wait_for(seconds(60)), std::future_status::ready);
  released.set_value();
  threads.reset();  // before what its tasks use
}

TEST(RpcThreadsTest, ASourceWithoutEndDoesNotStarveOthers) {
  auto threads = Make(2);
  auto endless = std::make_shared<Bell>([] {}, true);
  std::promise<void> done;
  auto bell = std::make_shared<Bell>([&] { done.set_value(); });
  ASSERT_TRUE(threads->Add(endless));
  ASSERT_TRUE(threads->Add(bell));
  bell->Ring();
  EXPECT_EQ(done.get_future().wait_for(seconds(60)), std::future_status::ready);
  threads->Remove(*endless);
  threads.reset();
}

TEST(RpcThreadsTest, AWaitOfAUserCostsLittleWhileATaskRuns) {
  auto threads = Make(2);
  std::atomic<bool> is_over = false;
  threads->Run([&] {
    std::this_thread::sleep_for(milliseconds(500));  // the time that is measured
    is_over = true;
    threads->NotifyWaiters();
  });
  double before = SecondsOfThisThread();
  EXPECT_TRUE(threads->Await([&] { return is_over.load(); }, nullptr, Soon()));
  EXPECT_LT(SecondsOfThisThread() - before, 0.25);
  threads.reset();
}

TEST(RpcThreadsTest, ManyUsersWaitAtOnce) {
  auto threads = Make(4);
  Threads& pool = *threads;  // for tasks that outlast the pointer
  std::vector<std::atomic<bool>> over(8);
  std::vector<std::jthread> users;
  std::atomic<int> right = 0;
  for (auto& each : over) {
    users.emplace_back([&] {
      bool ended = pool.Await([&] { return each.load(); }, nullptr, Soon());
      if (ended) right += 1;
    });
  }
  for (auto& each : over) {
    pool.Run([&] {
      each = true;
      pool.NotifyWaiters();
    });
  }
  users.clear();
  threads.reset();
  EXPECT_EQ(right, 8);
}

TEST(RpcThreadsTest, AWaitEndsAtItsDeadline) {
  auto threads = Make(2);
  TimePoint began = MonotonicClock().Now();
  EXPECT_FALSE(threads->Await([] { return false; }, nullptr, began + milliseconds(20)));
  EXPECT_GE(MonotonicClock().Now(), began + milliseconds(20));
}

TEST(RpcThreadsTest, TasksThatAreQueuedRunBeforeTheEnd) {
  std::atomic<int> ran = 0;
  {
    auto threads = Make(2);
    for (int i = 0; i < 100; ++i) threads->Run([&] { ran += 1; });
  }
  EXPECT_EQ(ran, 100);
}

}  // namespace
}  // namespace rankrun::comm::rpc

#include "comm/rpc/threads.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/pause.h"
#include "base/process/start_thread.h"

namespace rankrun::comm::rpc {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Time after the last data in which a thread polls without sleeping: a peer that works
// with this process answers in it.
constexpr microseconds kSpin{60};
// Looks at one source only, between two looks at all. Each look at all that finds no other
// source doubles them.
constexpr int kMinRounds = 8;
constexpr int kMaxRounds = 64;
// Data counts as this many looks without.
constexpr int kRoundsOfSuccess = 4;
// A task that takes longer than one or two ticks no longer delays the polling.
constexpr microseconds kTick{250};
// The same while tasks come and go, and the number of ticks after which they do.
constexpr microseconds kTickInTraffic{1000};
constexpr int kTicksToTraffic = 8;
constexpr int kTicksToRest = 40;
// Longest sleep of a thread of the user, which then looks at is_over again.
constexpr milliseconds kSlice{4};
// Tries of a thread of the user to take the right from a thread that carries out tasks.
constexpr int kTriesToTake = 2000;

TimePoint Now() { return MonotonicClock().Now(); }

}  // namespace

Result<std::unique_ptr<Threads>> Threads::Make(int max_tasks) {
  Fd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return SystemError("create an epoll instance", errno);
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return SystemError("create an eventfd", errno);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return SystemError("wait for an eventfd", errno);
  }
  std::unique_ptr<Threads> made(new Threads(max_tasks, std::move(epoll), std::move(wake)));
  auto watch = StartThread([threads = made.get()] { threads->Watch(); });
  if (!watch) return std::move(watch).error();
  made->watch_ = *std::move(watch);
  MutexLock lock(made->mutex_);
  made->needs_poller_ = true;
  auto started = made->WakeOrStartThread();
  lock.Unlock();
  if (!started) return std::move(started).error();
  return made;
}

Threads::~Threads() {
  std::vector<std::thread> ending;
  {
    MutexLock lock(mutex_);
    is_stopping_.store(true);
    ending.swap(threads_);
    changed_.NotifyAll();
    watch_changed_.NotifyAll();
  }
  Wake();
  for (std::thread& thread : ending) thread.join();
  if (watch_.joinable()) watch_.join();
}

Result<void> Threads::Add(std::shared_ptr<Source> source) {
  epoll_event event{.events = EPOLLIN, .data = {.ptr = source.get()}};
  int fd = source->fd();
  MutexLock lock(mutex_);
  sources_.push_back(std::move(source));
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  int error_number = errno;
  sources_.pop_back();
  return SystemError("wait for a connection", error_number);
}

void Threads::Remove(const Source& source) {
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, source.fd(), nullptr);
  MutexLock lock(mutex_);
  auto found = std::find_if(sources_.begin(), sources_.end(),
                            [&](const auto& each) { return each.get() == &source; });
  if (found == sources_.end()) return;
  removed_.push_back(std::move(*found));
  sources_.erase(found);
  has_removed_.store(true);
}

bool Threads::SetWritable(const Source& source, bool is_wanted) {
  epoll_event event{.events = EPOLLIN | (is_wanted ? uint32_t{EPOLLOUT} : 0U),
                    .data = {.ptr = const_cast<Source*>(&source)}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, source.fd(), &event) == 0;
}

// Called by the thread that polls, between two rounds: it uses no removed source now.
void Threads::ForgetRemoved() {
  std::vector<std::shared_ptr<Source>> forgotten;
  MutexLock lock(mutex_);
  has_removed_.store(false);
  forgotten.swap(removed_);
  for (const auto& source : forgotten) {
    if (hot_ == source.get()) hot_ = nullptr;
  }
  lock.Unlock();
}

void Threads::Wake() { eventfd_write(wake_.get(), 1); }

// Waits for events. The thread sees each Wake after it has set sleeps_.
int Threads::Sleep(epoll_event* events, int size, int timeout_ms) {
  if (timeout_ms == 0) return epoll_wait(epoll_.get(), events, size, 0);
  sleeps_.store(true);
  bool gives_way = is_stopping_.load() || (pool_polls_.load() && wanted_.load() > 0);
  int count = epoll_wait(epoll_.get(), events, size, gives_way ? 0 : timeout_ms);
  sleeps_.store(false);
  return count;
}

// Looks at the sources once. Returns whether anything has moved.
bool Threads::PollOnce(Source* expected, int timeout_ms, std::vector<Task>& tasks) {
  if (has_removed_.load(std::memory_order_relaxed)) ForgetRemoved();
  Source* likely = expected != nullptr ? expected : hot_;
  for (; likely != nullptr && rounds_left_ > 0; --rounds_left_) {
    if (!likely->Move(tasks)) continue;
    rounds_left_ -= kRoundsOfSuccess;
    return true;
  }
  std::array<epoll_event, 32> events;
  int count = Sleep(events.data(), static_cast<int>(events.size()), timeout_ms);
  bool any = false;
  rounds_ = std::min(2 * rounds_, kMaxRounds);
  for (int i = 0; i < count; ++i) {
    auto* source = static_cast<Source*>(events[static_cast<size_t>(i)].data.ptr);
    if (source == nullptr) {
      eventfd_t value = 0;
      eventfd_read(wake_.get(), &value);
      continue;
    }
    if (source != likely) rounds_ = kMinRounds;
    hot_ = source;
    any = source->Move(tasks) || any;
  }
  rounds_left_ = rounds_;
  return any;
}

// Polls until another thread should: a thread of the user, or one that took over while
// this one carried out a task.
void Threads::PollForTasks() {
  auto ticket = right_.Take();
  std::vector<Task> tasks;
  TimePoint busy_until = Now() + kSpin;
  while (ticket) {
    pool_polls_.store(true);
    while (tasks.empty() && !is_stopping_.load(std::memory_order_relaxed) && wanted_.load() == 0) {
      bool spins = Now() < busy_until;
      bool any = PollOnce(nullptr, spins ? 0 : -1, tasks);
      if (any && tasks.empty()) busy_until = Now() + kSpin;
    }
    pool_polls_.store(false);
    if (tasks.empty()) break;
    bool runs_one = TryBeginTask();
    for (size_t i = runs_one ? 1 : 0; i < tasks.size(); ++i) Run(std::move(tasks[i]));
    if (runs_one) {
      Ticket lent = right_.Lend(*ticket);
      ArmWatch();
      tasks.front()();
      tasks.front() = nullptr;
      EndTask();
      ticket = right_.TakeBack(lent);
      if (!ticket) ticket = right_.Take();  // the task has had it, and has released it
    }
    tasks.clear();
    busy_until = Now() + kSpin;
  }
  if (!ticket) return;
  right_.Release(*ticket);
  NotifyWaiters();
  ArmWatch();
}

bool Threads::TryBeginTask() {
  MutexLock lock(mutex_);
  if (!MayRunTask()) return false;
  running_ += 1;
  return true;
}

void Threads::EndTask() {
  MutexLock lock(mutex_);
  running_ -= 1;
  if (!queue_.empty()) static_cast<void>(WakeOrStartThread());
}

void Threads::Work() {
  TaskWait hook(*this);
  WaitHook::OfThisThread() = &hook;
  MutexLock lock(mutex_);
  for (;;) {
    if (needs_poller_ && !is_stopping_.load()) {
      needs_poller_ = false;
      lock.Unlock();
      PollForTasks();
      lock.Lock();
    } else if (!queue_.empty() && MayRunTask()) {
      Task task = std::move(queue_.front());
      queue_.pop_front();
      running_ += 1;
      lock.Unlock();
      task();
      task = nullptr;
      lock.Lock();
      running_ -= 1;
    } else if (is_stopping_.load()) {
      return;  // threads that run tasks carry out those that are queued
    } else {
      Rest(lock);
    }
  }
}

void Threads::Rest(MutexLock&) {
  resting_ += 1;
  while (woken_ == 0 && !is_stopping_.load()) changed_.Wait(mutex_);
  if (woken_ > 0) {
    woken_ -= 1;  // WakeOrStartThread has counted it
  } else {
    resting_ -= 1;
  }
}

void Threads::Run(Task task) {
  MutexLock lock(mutex_);
  queue_.push_back(std::move(task));
  if (MayRunTask()) static_cast<void>(WakeOrStartThread());
}

// One thread more than tasks may run, so that somebody polls when all tasks do. Without
// memory for a thread the watch tries again.
Result<void> Threads::WakeOrStartThread() {
  if (resting_ > 0) {
    resting_ -= 1;
    woken_ += 1;
    changed_.NotifyOne();
    return {};
  }
  int most = max_tasks_ + waiting_tasks_ + 1;
  if (is_stopping_.load() || static_cast<int>(threads_.size()) >= most) return {};
  auto thread = StartThread([this] { Work(); });
  if (!thread) return std::move(thread).error();
  threads_.push_back(*std::move(thread));
  return {};
}

void Threads::TaskWait::BeginWait() {
  if (depth_++ > 0) return;
  MutexLock lock(threads_.mutex_);
  threads_.waiting_tasks_ += 1;
  if (!threads_.queue_.empty()) static_cast<void>(threads_.WakeOrStartThread());
}

void Threads::TaskWait::EndWait() {
  if (--depth_ > 0) return;
  MutexLock lock(threads_.mutex_);
  threads_.waiting_tasks_ -= 1;
}

// A thread that carries out tasks gives way to one of the user soon.
std::optional<PollRight::Ticket> Threads::TakeSoon(const std::function<bool()>& is_over) {
  auto ticket = right_.Take();
  if (ticket || !pool_polls_.load()) return ticket;
  if (sleeps_.load()) Wake();
  for (int i = 0; i < kTriesToTake && !is_over(); ++i) {
    if (ticket = right_.Take(); ticket) return ticket;
    Pause();
  }
  return std::nullopt;
}

void Threads::RestUntilNotified(const std::function<bool()>& is_over) {
  MutexLock lock(mutex_);
  waiters_.fetch_add(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with that of NotifyWaiters
  bool can_poll = !PollRight::IsTaken(right_.Look());
  if (!is_over() && !can_poll) waiters_changed_.WaitUntil(mutex_, Now() + kSlice);
  waiters_.fetch_sub(1);
}

bool Threads::PollUntil(const std::function<bool()>& is_over, Source* expected,
                        TimePoint deadline) {
  std::vector<Task> tasks;
  TimePoint busy_until = Now() + kSpin;
  while (!is_over()) {
    TimePoint now = Now();
    if (now >= deadline) return false;
    int timeout_ms = now < busy_until ? 0 : static_cast<int>(kSlice.count());
    bool any = PollOnce(expected, timeout_ms, tasks);
    for (Task& task : tasks) Run(std::move(task));
    tasks.clear();
    if (is_over()) break;
    if (any) busy_until = Now() + kSpin;
  }
  return true;
}

bool Threads::Await(const std::function<bool()>& is_over, Source* expected, TimePoint deadline) {
  HookedWait counted;
  wanted_.fetch_add(1);
  bool over = false;
  while (!(over = is_over()) && Now() < deadline) {
    auto ticket = TakeSoon(is_over);
    if (!ticket) {
      RestUntilNotified(is_over);
      continue;
    }
    over = PollUntil(is_over, expected, deadline);
    right_.Release(*ticket);
    NotifyWaiters();
    break;
  }
  wanted_.fetch_sub(1);
  ArmWatch();
  return over;
}

void Threads::NotifyWaiters() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleeps_.load()) Wake();
  if (waiters_.load() == 0) return;
  MutexLock lock(mutex_);
  waiters_changed_.NotifyAll();
}

void Threads::ArmWatch() {
  if (watch_is_armed_.exchange(true)) return;
  MutexLock lock(mutex_);
  watch_changed_.NotifyOne();
}

void Threads::AwaitArmed() {
  MutexLock lock(mutex_);
  while (!watch_is_armed_.load() && !is_stopping_.load()) watch_changed_.Wait(mutex_);
}

// Lets a thread poll if nobody has for a tick or two.
void Threads::Watch() {
  Ticket before = right_.Look();
  int quiet = 0;
  int busy = 0;
  while (!is_stopping_.load()) {
    AwaitArmed();
    std::this_thread::sleep_for(busy < kTicksToTraffic ? kTick : kTickInTraffic);
    Ticket now = right_.Look();
    bool is_same = now == std::exchange(before, now);
    busy = is_same ? 0 : busy + 1;
    if (is_same && !PollRight::IsTaken(now) && wanted_.load() == 0) {
      MutexLock lock(mutex_);
      needs_poller_ = true;
      static_cast<void>(WakeOrStartThread());
      quiet = 0;
    }
    quiet = is_same ? quiet + 1 : 0;
    if (quiet < kTicksToRest) continue;
    quiet = 0;
    watch_is_armed_.store(false);
    if (right_.Look() != now || !PollRight::IsTaken(now)) watch_is_armed_.store(true);
  }
}

int Threads::size() const {
  MutexLock lock(mutex_);
  return static_cast<int>(threads_.size());
}

int Threads::resting() const {
  MutexLock lock(mutex_);
  return resting_;
}

}  // namespace rankrun::comm::rpc

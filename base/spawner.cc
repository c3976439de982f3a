#include "base/spawner.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/spawn_slots.h"
#include "base/start_thread.h"
#include "base/uv_loop.h"

namespace rankrun {

namespace {

constexpr size_t kMostThreads = 4;
// That many are started by one thread sooner than another thread is made.
constexpr size_t kJobsPerThread = 4;

}  // namespace

Spawner::Spawner(Loop& loop)
    : loop_(loop),
      most_threads_(std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads)) {
  AddThread();  // else Start() tries again
}

bool Spawner::AddThread() {
  // Taken now, before descriptors of more starts are open.
  auto slots = SpawnSlots::Open();
  std::optional<SpawnSlots> own;
  if (slots) own.emplace(std::move(*slots));
  auto thread = StartThread([this, own = std::move(own)] { RunThread(own); });
  if (!thread) return false;  // the limit of processes, most likely
  threads_.push_back(*std::move(thread));
  return true;
}

Spawner::~Spawner() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Spawner::Start(SpawnSpec spec, OnStarted on_started) {
  loop_.AssertOnLoop();
  // Nobody changes them between the starts of a batch.
  if (*pending_ == 0) changed_signals_ = ChangedSignals();
  spec.changed_signals = changed_signals_;
  *pending_ += 1;
  if (threads_.empty() && !AddThread()) {
    Tell(SystemError("start a thread that starts workers", EAGAIN), std::move(on_started));
    return;
  }
  size_t waiting;
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back({std::move(spec), std::move(on_started)});
    waiting = jobs_.size();
  }
  changed_.notify_one();
  if (waiting > kJobsPerThread * threads_.size() && threads_.size() < most_threads_) AddThread();
}

void Spawner::Abandon() {
  loop_.AssertOnLoop();
  std::lock_guard lock(mutex_);
  *pending_ -= static_cast<int>(jobs_.size());
  jobs_.clear();
}

bool Spawner::AwaitIdle(std::chrono::milliseconds patience) {
  loop_.AssertOnLoop();
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, patience, [this] { return jobs_.empty() && under_way_ == 0; });
}

void Spawner::RunThread(const std::optional<SpawnSlots>& slots) {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    under_way_ += 1;
    lock.unlock();
    auto result = slots ? SpawnProcess(job.spec, *slots) : SpawnProcess(job.spec);
    Tell(std::move(result), std::move(job.on_started));
    lock.lock();
    under_way_ -= 1;
    done_.notify_all();
  }
}

void Spawner::Tell(Result<SpawnedProcess> result, OnStarted on_started) {
  // std::function wants copyable captures; a pidfd is not.
  auto started = std::make_shared<Result<SpawnedProcess>>(std::move(result));
  loop_.Post([alive = std::weak_ptr(pending_), started, on_started = std::move(on_started)] {
    auto pending = alive.lock();
    if (pending == nullptr) return;
    *pending -= 1;
    on_started(std::move(*started));
  });
}

}  // namespace rankrun

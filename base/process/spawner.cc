#include "base/process/spawner.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/process/spawn_slots.h"
#include "base/process/start_thread.h"
#include "base/uv/uv_loop.h"

namespace rankrun {

namespace {

constexpr size_t kMaxThreads = 4;
// One thread starts this many processes faster than another thread is created.
constexpr size_t kJobsPerThread = 4;

}  // namespace

Spawner::Spawner(Loop& loop)
    : loop_(loop),
      max_threads_(std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMaxThreads)) {
  AddThread();  // on failure, Start() tries again
}

bool Spawner::AddThread() {
  // Open the slots now, before the descriptors of more starts are open.
  auto slots = SpawnSlots::Open();
  std::optional<SpawnSlots> own;
  if (slots) own.emplace(std::move(*slots));
  auto thread = StartThread([this, own = std::move(own)] { RunThread(own); });
  if (!thread) return false;  // most likely the limit of processes
  threads_.push_back(*std::move(thread));
  return true;
}

Spawner::~Spawner() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  for (std::thread& thread : threads_) thread.join();
}

void Spawner::Start(SpawnSpec spec, OnStarted on_started, OtherWay other_way) {
  loop_.AssertOnLoop();
  // The dispositions do not change between the starts of a batch.
  if (*pending_ == 0) changed_signals_ = ChangedSignals();
  spec.changed_signals = changed_signals_;
  *pending_ += 1;
  if (threads_.empty() && !AddThread()) {
    DeliverResult(SystemError("start a thread that starts workers", EAGAIN), std::move(on_started));
    return;
  }
  size_t waiting;
  {
    MutexLock lock(mutex_);
    jobs_.push_back({std::move(spec), std::move(on_started), std::move(other_way)});
    waiting = jobs_.size();
  }
  changed_.NotifyOne();
  if (waiting > kJobsPerThread * threads_.size() && threads_.size() < max_threads_) AddThread();
}

void Spawner::Abandon() {
  loop_.AssertOnLoop();
  MutexLock lock(mutex_);
  *pending_ -= static_cast<int>(jobs_.size());
  jobs_.clear();
}

bool Spawner::AwaitIdle(std::chrono::milliseconds patience) {
  loop_.AssertOnLoop();
  TimePoint deadline = std::chrono::steady_clock::now() + patience;
  MutexLock lock(mutex_);
  while (!is_idle() && done_.WaitUntil(mutex_, deadline)) {
  }
  return is_idle();
}

void Spawner::RunThread(const std::optional<SpawnSlots>& slots) {
  MutexLock lock(mutex_);
  for (;;) {
    while (!ending_ && jobs_.empty()) changed_.Wait(mutex_);
    if (ending_) return;
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    under_way_ += 1;
    lock.Unlock();
    auto result = job.other_way ? job.other_way(job.spec) : std::nullopt;
    if (!result) result = slots ? SpawnProcess(job.spec, *slots) : SpawnProcess(job.spec);
    DeliverResult(*std::move(result), std::move(job.on_started));
    lock.Lock();
    under_way_ -= 1;
    done_.NotifyAll();
  }
}

void Spawner::DeliverResult(Result<SpawnedProcess> result, OnStarted on_started) {
  // std::function needs copyable captures; a handle is not copyable.
  auto started = std::make_shared<Result<SpawnedProcess>>(std::move(result));
  loop_.Post([alive = std::weak_ptr(pending_), started, on_started = std::move(on_started)] {
    auto pending = alive.lock();
    if (pending == nullptr) return;
    *pending -= 1;
    on_started(std::move(*started));
  });
}

}  // namespace rankrun

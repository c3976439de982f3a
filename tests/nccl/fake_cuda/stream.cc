#include "tests/nccl/fake_cuda/stream.h"

#include <utility>

namespace rankrun::fake_cuda {

bool Mark::is_reached() {
  MutexLock lock(mutex_);
  return reached_;
}

void Mark::Reach() {
  MutexLock lock(mutex_);
  reached_ = true;
  changed_.NotifyAll();
}

void Mark::Await() {
  MutexLock lock(mutex_);
  while (!reached_) changed_.Wait(mutex_);
}

Stream::Stream() : thread_([this] { Run(); }) {}

Stream::~Stream() {
  {
    MutexLock lock(mutex_);
    ends_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void Stream::Push(std::function<void()> task) {
  MutexLock lock(mutex_);
  tasks_.push_back(std::move(task));
  changed_.NotifyAll();
}

std::shared_ptr<Mark> Stream::Record() {
  auto mark = std::make_shared<Mark>();
  Push([mark] { mark->Reach(); });
  return mark;
}

void Stream::Run() {
  MutexLock lock(mutex_);
  while (true) {
    while (tasks_.empty() && !ends_) changed_.Wait(mutex_);
    if (tasks_.empty()) return;
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    MutexUnlock unlock(mutex_);
    task();
  }
}

}  // namespace rankrun::fake_cuda

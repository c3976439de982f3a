#pragma once

#include <functional>
#include <list>
#include <memory>
#include <thread>

#include "base/mutex.h"

// Streams and events of the fake CUDA runtime. A stream is a thread that runs
// tasks in order.
namespace rankrun::fake_cuda {

// A point in a stream that is reached once.
class Mark {
 public:
  bool is_reached();
  void Reach();
  void Await();

 private:
  Mutex mutex_;
  CondVar changed_;
  bool reached_ GUARDED_BY(mutex_) = false;
};

// Thread: any.
class Stream {
 public:
  Stream();
  ~Stream();  // after its last task

  void Push(std::function<void()> task);
  std::shared_ptr<Mark> Record();

 private:
  void Run();

  Mutex mutex_;
  CondVar changed_;
  std::list<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rankrun::fake_cuda

#pragma once

#include "base/private_api.h"

namespace rankrun::comm {

// Told by waits of the public library when a thread begins and ends to wait, so that a pool
// can let another thread work meanwhile.
// Thread: that of the wait.
class WaitHook {
 public:
  virtual ~WaitHook() = default;
  virtual void BeginWait() = 0;
  virtual void EndWait() = 0;

  // Hook of this thread; null: none.
  RANKRUN_PRIVATE_API static WaitHook*& OfThisThread();
};

// Calls the hook of this thread around a wait.
class HookedWait {
 public:
  HookedWait() : hook_(WaitHook::OfThisThread()) {
    if (hook_ != nullptr) hook_->BeginWait();
  }
  HookedWait(const HookedWait&) = delete;
  HookedWait& operator=(const HookedWait&) = delete;
  ~HookedWait() {
    if (hook_ != nullptr) hook_->EndWait();
  }

 private:
  WaitHook* const hook_;
};

}  // namespace rankrun::comm

#include "comm/core/wait_hook.h"

namespace rankrun::comm {

WaitHook*& WaitHook::OfThisThread() {
  thread_local WaitHook* hook = nullptr;
  return hook;
}

}  // namespace rankrun::comm

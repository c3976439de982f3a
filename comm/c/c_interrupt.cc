#include <rankrun/c/interrupt.h>

#include "base/interruptible_call.h"
#include "comm/c/c_guard.h"

rankrun_status rankrun_set_interrupt_hook(rankrun_interrupt_hook hook, void* context) {
  return rankrun::comm::Guarded([&] { rankrun::SetInterruptHook(hook, context); });
}

#include <string>

#include <rankrun/c/debug.h>
#include <rankrun/diagnosis/debug.h>

#include "comm/c/c_guard.h"

using rankrun::DebugLevel;
using rankrun::comm::Guarded;
using rankrun::comm::NotNull;
using rankrun::comm::ThrowInvalid;

extern "C" {

rankrun_status rankrun_get_debug_level(int* level) {
  return Guarded([&] {
    int& result = NotNull(level, "level");
    result = static_cast<int>(rankrun::GetDebugLevel());
  });
}

rankrun_status rankrun_set_debug_level(int level) {
  return Guarded([&] {
    if (level < RANKRUN_DEBUG_OFF || level > RANKRUN_DEBUG_DETAIL) {
      ThrowInvalid("level is " + std::to_string(level) +
                   ": want RANKRUN_DEBUG_OFF, RANKRUN_DEBUG_INFO or RANKRUN_DEBUG_DETAIL");
    }
    rankrun::SetDebugLevel(static_cast<DebugLevel>(level));
  });
}

rankrun_status rankrun_set_debug_level_from_env(void) {
  return Guarded([] { rankrun::SetDebugLevelFromEnv(); });
}

}  // extern "C"

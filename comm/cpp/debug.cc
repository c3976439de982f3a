#include <string>
#include <utility>

#include <rankrun/diagnosis/debug.h>

#include "comm/core/debug_level.h"
#include "comm/core/throw.h"

namespace rankrun {

DebugLevel GetDebugLevel() {
  auto level = comm::CurrentDebugLevel();
  if (!level) comm::Throw(std::move(level).error().In("GetDebugLevel"));
  return *level;
}

void SetDebugLevel(DebugLevel level) {
  if (level < DebugLevel::kOff || level > DebugLevel::kDetail) {
    comm::Throw({ErrorCode::kInvalid, "SetDebugLevel: level is " +
                                          std::to_string(static_cast<int>(level)) +
                                          ": want kOff, kInfo or kDetail"});
  }
  comm::ChooseDebugLevel(level);
}

void SetDebugLevelFromEnv() {
  if (auto ok = comm::ReadDebugLevel(); !ok) {
    comm::Throw(std::move(ok).error().In("SetDebugLevelFromEnv"));
  }
}

}  // namespace rankrun

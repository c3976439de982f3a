#pragma once

#include <atomic>
#include <functional>

#include <rankrun/diagnosis/debug.h>

#include "base/log.h"
#include "base/result.h"

namespace rankrun::comm {

// Returns the value of a variable, or null, like getenv.
using GetVariable = std::function<const char*(const char* name)>;

// Read the debug level, the level of the log without RANKRUN_LOG, and whether an error
// shows a stack. Pure.
// Errors: kInvalid, with the variable, its value and the values it may have.
// Source: c10d's debug.cpp and logging.cpp, whose log needs TORCH_CPP_LOG_LEVEL=INFO
// for a debug level; here a debug level without that variable is enough.
Result<DebugLevel> DebugLevelIn(const GetVariable& get);
Result<LogLevel> LogLevelIn(const GetVariable& get, DebugLevel level);
Result<bool> ShowsStacksIn(const GetVariable& get);

// The level of this process, as rankrun/debug.h describes it. A change sets the default
// level of the log, too. A wrong value of TORCH_CPP_LOG_LEVEL or
// TORCH_SHOW_CPP_STACKTRACES is a warning, as in PyTorch.
// Thread: any.
Result<DebugLevel> CurrentDebugLevel();
void ChooseDebugLevel(DebugLevel level);
Result<void> ReadDebugLevel();
// As ReadDebugLevel, unless the program has chosen the level.
Result<DebugLevel> DebugLevelForInit();

namespace internal {
extern std::atomic<bool> logs_calls;
extern std::atomic<bool> shows_stacks;
}  // namespace internal

// Returns whether calls are logged: the level is kInfo or kDetail.
inline bool LogsCalls() { return internal::logs_calls.load(std::memory_order_relaxed); }
// Returns whether the error of a call shows its stack: the level is kDetail, and
// TORCH_SHOW_CPP_STACKTRACES is 1.
inline bool ShowsStacks() { return internal::shows_stacks.load(std::memory_order_relaxed); }
}  // namespace rankrun::comm

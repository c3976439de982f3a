#pragma once

#include <functional>
#include <string_view>

namespace rankrun {

enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError, kOff };

// Writes one line "rankrun: <level>: <message>" to the log sink (standard error
// until SetLogSink) if `level` is at least that of RANKRUN_LOG (trace, debug,
// info, warn, error, off), else the default level. Thread: any.
void Log(LogLevel level, std::string_view message);

// Returns whether Log would write at this level, for messages that are
// expensive to build.
bool LogEnabled(LogLevel level);

inline void LogTrace(std::string_view message) { Log(LogLevel::kTrace, message); }
inline void LogDebug(std::string_view message) { Log(LogLevel::kDebug, message); }
inline void LogInfo(std::string_view message) { Log(LogLevel::kInfo, message); }
inline void LogWarn(std::string_view message) { Log(LogLevel::kWarn, message); }
inline void LogError(std::string_view message) { Log(LogLevel::kError, message); }

// Set and return the level that holds without RANKRUN_LOG; at first kWarn. A plug-in
// has a log of its own, which needs the level, too. Thread: any.
void SetDefaultLogLevel(LogLevel level);
LogLevel DefaultLogLevel();

// Sends complete lines (with newline) to `sink` from now on; an empty sink
// restores standard error. Any thread that logs may call the sink.
void SetLogSink(std::function<void(std::string_view line)> sink);

}  // namespace rankrun

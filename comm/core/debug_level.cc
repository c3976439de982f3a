#include "comm/core/debug_level.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/mutex.h"

namespace rankrun::comm {

std::atomic<bool> internal::logs_calls = false;
std::atomic<bool> internal::shows_stacks = false;

namespace {

struct Level {
  Mutex mutex;
  std::optional<DebugLevel> level GUARDED_BY(mutex);  // none: it was never read
  bool is_chosen GUARDED_BY(mutex) = false;           // by the program
};

Level& OfThisProcess() {
  static auto* const kLevel = new Level;  // threads may log while the process ends
  return *kLevel;
}

// An empty string counts as unset.
std::string ValueOf(const GetVariable& get, const char* name) {
  const char* value = get(name);
  return value == nullptr ? "" : value;
}

std::string InUpperCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

Error Wrong(const char* name, const std::string& value, const char* wanted) {
  return {ErrorCode::kInvalid, std::string(name) + " is \"" + value + "\": want " + wanted};
}

// Returns the value, or a default after a warning.
template <typename T>
T OrWarn(const Result<T>& result, T otherwise, const char* in_words) {
  if (result) return *result;
  LogWarn(result.error().message + "; " + in_words + " is used");
  return otherwise;
}

void Use(DebugLevel level, Level& process) REQUIRES(process.mutex) {
  process.level = level;
  auto log_level = LogLevelIn(::getenv, level);
  SetDefaultLogLevel(log_level ? *log_level : LogLevel::kWarn);
  const bool is_used = ValueOf(::getenv, "RANKRUN_LOG").empty();
  if (is_used) OrWarn(log_level, LogLevel::kWarn, "WARNING");
  internal::logs_calls = level != DebugLevel::kOff;
  internal::shows_stacks =
      level == DebugLevel::kDetail && OrWarn(ShowsStacksIn(::getenv), false, "0");
}

Result<DebugLevel> Read(Level& process) REQUIRES(process.mutex) {
  auto level = DebugLevelIn(::getenv);
  if (level) Use(*level, process);
  return level;
}

}  // namespace

Result<DebugLevel> DebugLevelIn(const GetVariable& get) {
  for (const char* name : {"RANKRUN_DEBUG", "TORCH_DISTRIBUTED_DEBUG"}) {
    std::string value = ValueOf(get, name);
    if (value.empty()) continue;
    std::string level = InUpperCase(value);
    if (level == "OFF") return DebugLevel::kOff;
    if (level == "INFO") return DebugLevel::kInfo;
    if (level == "DETAIL") return DebugLevel::kDetail;
    return Wrong(name, value, "OFF, INFO or DETAIL");
  }
  return DebugLevel::kOff;
}

Result<LogLevel> LogLevelIn(const GetVariable& get, DebugLevel level) {
  constexpr char kName[] = "TORCH_CPP_LOG_LEVEL";
  std::string value = ValueOf(get, kName);
  std::string name = InUpperCase(value);
  // The library has no fatal lines, and errors must not be lost.
  if (name == "FATAL" || name == "3") return LogLevel::kError;
  if (name == "ERROR" || name == "2") return LogLevel::kError;
  if (name == "WARNING" || name == "1") return LogLevel::kWarn;
  bool is_info = name == "INFO" || name == "0";
  if (!is_info && !name.empty()) {
    return Wrong(kName, value, "INFO, WARNING, ERROR or FATAL, or 0, 1, 2 or 3");
  }
  switch (level) {
    case DebugLevel::kOff:
      return is_info ? LogLevel::kInfo : LogLevel::kWarn;
    case DebugLevel::kInfo:
      return LogLevel::kDebug;
    case DebugLevel::kDetail:
      return LogLevel::kTrace;
  }
  __builtin_unreachable();
}

Result<bool> ShowsStacksIn(const GetVariable& get) {
  constexpr char kName[] = "TORCH_SHOW_CPP_STACKTRACES";
  std::string value = ValueOf(get, kName);
  if (value.empty() || value == "0") return false;
  if (value == "1") return true;
  return Wrong(kName, value, "0 or 1");
}

Result<DebugLevel> CurrentDebugLevel() {
  Level& process = OfThisProcess();
  MutexLock lock(process.mutex);
  if (process.level) return *process.level;
  return Read(process);
}

void ChooseDebugLevel(DebugLevel level) {
  Level& process = OfThisProcess();
  MutexLock lock(process.mutex);
  process.is_chosen = true;
  Use(level, process);
}

Result<void> ReadDebugLevel() {
  Level& process = OfThisProcess();
  MutexLock lock(process.mutex);
  auto level = Read(process);
  if (!level) return level.error();
  process.is_chosen = false;
  return {};
}

Result<DebugLevel> DebugLevelForInit() {
  Level& process = OfThisProcess();
  MutexLock lock(process.mutex);
  if (process.is_chosen && process.level) return *process.level;
  auto level = DebugLevelIn(::getenv);
  if (level && process.level != *level) Use(*level, process);
  return level;
}

}  // namespace rankrun::comm

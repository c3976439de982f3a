#include "base/log.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>

#include <atomic>
#include <cstdlib>
#include <string>

#include "base/mutex.h"
#include "base/write_all.h"

namespace rankrun {
namespace {

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  __builtin_unreachable();
}

// Hands each line to the function of SetLogSink, or writes it to descriptor 2.
// It has a mutex of its own, which clang can check, in place of spdlog's.
class RedirectableSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  void Redirect(std::function<void(std::string_view)> target) {
    MutexLock lock(target_mutex_);
    target_ = std::move(target);
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    MutexLock lock(target_mutex_);  // the formatter has state, too
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    std::string_view text(line.data(), line.size());
    if (target_) {
      target_(text);
    } else {
      WriteAll(2, text);  // a failure cannot be reported anywhere else
    }
  }
  void flush_() override {}

  Mutex target_mutex_;
  std::function<void(std::string_view)> target_ GUARDED_BY(target_mutex_);
};

struct Logging {
  std::shared_ptr<RedirectableSink> sink = std::make_shared<RedirectableSink>();
  spdlog::logger logger{"rankrun", sink};  // spdlog shares its sinks between loggers
  bool has_own_level;                      // that of RANKRUN_LOG
  std::atomic<LogLevel> default_level = LogLevel::kWarn;

  Logging() {
    logger.set_pattern("rankrun: %l: %v");
    const char* wanted = std::getenv("RANKRUN_LOG");
    has_own_level = wanted != nullptr && *wanted != '\0';
    std::string name = has_own_level ? wanted : "warn";
    auto level = spdlog::level::from_str(name);  // "off" for an unknown name
    if (level == spdlog::level::off && name != "off") {
      level = spdlog::level::warn;
      logger.set_level(level);
      logger.warn(
          "RANKRUN_LOG is \"{}\": want trace, debug, info, warn, error or off; warn is used", name);
    }
    logger.set_level(level);
  }
};

Logging& TheLogging() {
  // Never destroyed: threads may log while the process ends.
  static auto* logging = new Logging;
  return *logging;
}

}  // namespace

void Log(LogLevel level, std::string_view message) {
  TheLogging().logger.log(ToSpdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

bool LogEnabled(LogLevel level) { return TheLogging().logger.should_log(ToSpdlog(level)); }

void SetDefaultLogLevel(LogLevel level) {
  Logging& logging = TheLogging();
  logging.default_level = level;
  if (!logging.has_own_level) logging.logger.set_level(ToSpdlog(level));
}

LogLevel DefaultLogLevel() { return TheLogging().default_level; }

void SetLogSink(std::function<void(std::string_view line)> sink) {
  TheLogging().sink->Redirect(std::move(sink));
}

}  // namespace rankrun

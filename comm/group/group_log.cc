#include "comm/group/group_log.h"

#include <chrono>
#include <cstdio>
#include <string>

#include "base/format.h"
#include "base/log.h"
#include "base/roll_call.h"

namespace rankrun::comm {
namespace {

// Returns "0.177 ms".
std::string InMilliseconds(Duration duration) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3f ms",
                std::chrono::duration<double, std::milli>(duration).count());
  return text;
}

}  // namespace

void LogMade(const GroupIdentity& identity, Duration took) {
  if (!LogEnabled(LogLevel::kDebug)) return;
  LogDebug(PlaceIn(identity) + ": made in " + InMilliseconds(took) + ": name \"" + identity.name +
           "\", backend " + identity.backend + ", global " + RanksInWords(identity.global_ranks) +
           ", time-out " + FormatSeconds(identity.timeout) +
           (identity.checks_all_calls ? ", calls are compared before they run" : ""));
}

void LogDestroyed(const GroupIdentity& identity, uint64_t collectives) {
  if (!LogEnabled(LogLevel::kDebug)) return;
  LogDebug(PlaceIn(identity) + ": destroyed after " + std::to_string(collectives) +
           (collectives == 1 ? " collective" : " collectives"));
}

void LogBegin(const Operation& operation, const GroupIdentity& identity) {
  if (!LogEnabled(LogLevel::kTrace)) return;
  LogTrace(PlaceIn(identity) + ": " + Describe(operation) + " begins");
}

void LogEnd(const Operation& operation, const GroupIdentity& identity, TimePoint since) {
  Duration took = MonotonicClock().Now() - since;
  bool is_first = operation.number == 1;
  bool is_slow = took >= identity.slow_call;
  if (!is_first && !is_slow) return;
  std::string text = PlaceIn(identity) + ": " + Describe(operation);
  if (is_first) text += ", the first collective,";
  text += " took " + InMilliseconds(took);
  if (!is_slow) return LogDebug(text);
  LogInfo(text + ", which is slow (" + std::to_string(identity.slow_call.count()) +
          " ms or more, RANKRUN_SLOW_CALL_MS)");
}

Result<void> RunLogged(const Operation& operation, const GroupIdentity& identity,
                       const std::function<Result<void>()>& run) {
  if (operation.device != DeviceType::kCpu) return run();
  LogBegin(operation, identity);
  TimePoint since = MonotonicClock().Now();
  auto ok = run();
  if (ok) LogEnd(operation, identity, since);
  return ok;
}

}  // namespace rankrun::comm

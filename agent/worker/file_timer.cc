#include "agent/worker/file_timer.h"

#include <signal.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace rankrun::agent {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;

std::optional<int> Integer(const json& object, const char* name) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  auto value = found->get<int64_t>();
  bool fits = value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max();
  return fits ? std::optional(static_cast<int>(value)) : std::nullopt;
}

Error Invalid(const std::string& reason) { return {ErrorCode::kInvalid, reason}; }

}  // namespace

Result<TimerRequest> ParseTimerRequest(std::string_view line) {
  json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Invalid("not a JSON object");
  if (Integer(object, "version") != kVersion) return Invalid("\"version\" is not 1");
  auto pid = Integer(object, "pid");
  if (!pid || *pid <= 0) return Invalid("\"pid\" is not the number of a process");
  auto scope = object.find("scope_id");
  if (scope == object.end() || !scope->is_string()) return Invalid("\"scope_id\" is not a text");
  auto expires = object.find("expiration_time");
  if (expires == object.end() || !expires->is_number() || !std::isfinite(expires->get<double>())) {
    return Invalid("\"expiration_time\" is not a number");
  }
  auto signal_number = Integer(object, "signal");
  if (!signal_number || *signal_number >= NSIG) return Invalid("\"signal\" is not a signal");
  TimerRequest request{.pid = *pid,
                       .scope = scope->get<std::string>(),
                       .expires = std::nullopt,
                       .signal_number = *signal_number};
  if (double time = expires->get<double>(); time >= 0) request.expires = time;
  return request;
}

Result<void> FileTimers::Set(Timer timer) {
  std::pair key(timer.pid, timer.scope);
  if (timers_.size() >= kMax && !timers_.contains(key)) {
    return Error{ErrorCode::kExhausted, "there are " + std::to_string(kMax) + " timers already"};
  }
  timers_.insert_or_assign(std::move(key), std::move(timer));
  return {};
}

std::optional<TimePoint> FileTimers::Next() const {
  std::optional<TimePoint> next;
  for (const auto& [key, timer] : timers_) {
    if (!next || timer.expires < *next) next = timer.expires;
  }
  return next;
}

std::vector<FileTimers::Timer> FileTimers::TakeExpired(TimePoint now) {
  std::vector<Timer> expired;
  for (const auto& [key, timer] : timers_) {
    if (timer.expires <= now) expired.push_back(timer);
  }
  std::ranges::stable_sort(expired, {}, &Timer::expires);
  std::vector<Timer> first;
  for (Timer& timer : expired) {
    auto same_process = [&](const Timer& other) { return other.pid == timer.pid; };
    if (std::ranges::none_of(first, same_process)) first.push_back(std::move(timer));
  }
  for (const Timer& timer : first) {
    std::erase_if(timers_, [&](const auto& entry) { return entry.first.first == timer.pid; });
  }
  return first;
}

}  // namespace rankrun::agent

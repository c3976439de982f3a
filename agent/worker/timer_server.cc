#include "agent/worker/timer_server.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "agent/process/descendants.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/process/process_handle.h"

namespace rankrun::agent {
namespace {

constexpr size_t kShownCharacters = 200;
constexpr std::chrono::milliseconds kStartPause{5};
// Limit, so that a TimePoint does not overflow.
constexpr double kMaxSeconds = 10.0 * 365 * 24 * 3600;

// Converts a time of day to the steady clock. Later changes of the time of day
// do not move the timer.
TimePoint AtTimeOfDay(double seconds_since_1970) {
  auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
  double left = seconds_since_1970 - std::chrono::duration<double>(since_1970).count();
  std::chrono::duration<double> wait(std::min(left, kMaxSeconds));
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<Duration>(wait);
}

}  // namespace

Result<std::unique_ptr<TimerServer>> TimerServer::Create(Loop& loop, const std::string& path,
                                                         Callbacks callbacks) {
  std::unique_ptr<TimerServer> server(new TimerServer(loop, std::move(callbacks)));
  auto fifo = LineFifo::Create(loop, path,
                               [raw = server.get()](std::string_view line) { raw->OnLine(line); });
  if (!fifo) return std::move(fifo).error();
  server->fifo_ = std::move(*fifo);
  return server;
}

TimerServer::TimerServer(Loop& loop, Callbacks callbacks)
    : callbacks_(std::move(callbacks)), next_(loop, [this] { OnTimer(); }) {}

void TimerServer::Forget() {
  timers_.Clear();
  next_.Stop();
  if (size_t count = ignored_.TakeExcess(); count > 0) {
    LogWarn("file timer: " + std::to_string(count) + " more requests were ignored");
  }
  if (size_t count = expired_.TakeExcess(); count > 0) {
    LogWarn("file timer: " + std::to_string(count) + " more timers have expired");
  }
}

void TimerServer::OnLine(std::string_view line) {
  auto request = ParseTimerRequest(line);
  if (request) {
    auto applied = Apply(*request);
    if (applied) return;
    request = std::move(applied).error();
  }
  if (!ignored_.Take()) return;
  LogWarn("file timer: " + request.error().message +
          ", ignored: " + OneLine(line, kShownCharacters));
}

Result<void> TimerServer::Apply(const TimerRequest& request) {
  if (!request.expires) {
    timers_.Release(request.pid, request.scope);
    return {};
  }
  uint64_t start_time = StartTimeOfProcess(request.pid);
  if (ChildAbove(request.pid) == 0) {
    return Error{ErrorCode::kInvalid,
                 "process " + std::to_string(request.pid) + " is neither a worker nor below one"};
  }
  auto set = timers_.Set({.pid = request.pid,
                          .scope = request.scope,
                          .expires = AtTimeOfDay(*request.expires),
                          .signal_number = request.signal_number,
                          .start_time = start_time});
  Arm();
  return set;
}

void TimerServer::Arm() {
  auto next = timers_.Next();
  if (!next) return;
  auto left = *next - std::chrono::steady_clock::now();
  next_.Start(std::max<Duration>(left, Duration::zero()));
}

void TimerServer::OnTimer() {
  bool all_done = true;
  for (const auto& timer : timers_.TakeExpired(std::chrono::steady_clock::now())) {
    if (Expire(timer)) continue;
    all_done = false;
    if (auto set = timers_.Set(timer); !set) LogWarn("file timer: " + set.error().message);
  }
  Arm();
  if (!all_done) next_.Start(kStartPause);
}

// Skips a process that has ended, because its pid may belong to another one
// now.
bool TimerServer::Expire(const FileTimers::Timer& timer) {
  auto process = ProcessHandle::Open(timer.pid);
  pid_t worker = ChildAbove(timer.pid);
  if (!process || worker == 0 || StartTimeOfProcess(timer.pid) != timer.start_time) return true;
  if (callbacks_.may_be_new(worker)) return false;
  callbacks_.on_expired({.pid = timer.pid,
                         .worker = worker,
                         .scope = timer.scope,
                         .at = timer.expires,
                         .signal_number = std::max(timer.signal_number, 0),
                         .is_suppressed = !expired_.Take()});
  if (timer.signal_number > 0) process->Send(timer.signal_number);
  return true;
}

std::string DescribeExpired(const TimerServer::Expired& expired, const std::string& owner) {
  constexpr size_t kShownScope = 80;  // characters
  std::string what = expired.signal_number == 0 ? "its signal is 0: nothing is sent"
                                                : "sending " + SignalName(expired.signal_number);
  return "the timer \"" + OneLine(expired.scope, kShownScope) + "\" of pid " +
         std::to_string(expired.pid) + owner + " has expired; " + what;
}

}  // namespace rankrun::agent

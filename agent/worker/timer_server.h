#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "agent/worker/file_timer.h"
#include "agent/worker/line_fifo.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// Server of torchrun's file timer: reads requests from a named pipe and signals
// processes whose timers have expired. Signals only descendants of this
// process.
// Thread: loop.
class TimerServer {
 public:
  struct Expired {
    pid_t pid;
    pid_t worker;  // our child that is its ancestor, or the process itself
    std::string scope;
    TimePoint at;
    int signal_number;   // signal that is sent; 0: none
    bool is_suppressed;  // over the quota: not shown, only counted
  };

  struct Callbacks {
    std::function<void(const Expired&)> on_expired;  // before the signal is sent
    // Returns whether a child may be a worker whose start is not known yet. Its
    // timers then wait until it is known.
    std::function<bool(pid_t child)> may_be_new;
  };

  // Errors: those of LineFifo.
  static Result<std::unique_ptr<TimerServer>> Create(Loop& loop, const std::string& path,
                                                     Callbacks callbacks);
  TimerServer(const TimerServer&) = delete;
  TimerServer& operator=(const TimerServer&) = delete;

  // Removes all timers of an attempt that is over. Logs the number of
  // suppressed messages.
  void Forget();

  const std::string& path() const { return fifo_->path(); }

 private:
  // Limits the messages that one attempt can cause.
  class Quota {
   public:
    bool Take() { return ++taken_ <= kMax; }
    size_t TakeExcess() {
      size_t taken = std::exchange(taken_, 0);
      return taken > kMax ? taken - kMax : 0;
    }

   private:
    static constexpr size_t kMax = 20;
    size_t taken_ = 0;
  };

  TimerServer(Loop& loop, Callbacks callbacks);

  void OnLine(std::string_view line);
  Result<void> Apply(const TimerRequest& request);
  void Arm();
  void OnTimer();
  bool Expire(const FileTimers::Timer& timer);  // false: retry later

  FileTimers timers_;
  Callbacks callbacks_;
  Timer next_;
  Quota expired_;
  Quota ignored_;
  std::unique_ptr<LineFifo> fifo_;
};

// Returns a text like: the timer "step" of pid 4711 (rank 2) has expired;
// sending SIGKILL
std::string DescribeExpired(const TimerServer::Expired& expired, const std::string& owner);

}  // namespace rankrun::agent

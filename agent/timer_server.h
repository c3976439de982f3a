#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "agent/file_timer.h"
#include "agent/line_fifo.h"
#include "base/uv_timer.h"

namespace rankrun::agent {

// torchrun's file timer: reads requests from a named pipe and sends the signal
// to a process whose timer has expired. To nobody but descendants of this process.
// Thread: loop.
class TimerServer {
 public:
  struct Expired {
    pid_t pid;
    pid_t worker;  // the child of ours that is above it, or itself
    std::string scope;
    TimePoint at;
    int signal_number;  // what was sent; 0: nothing
    bool counts_only;   // so many have been told of that this one is only counted
  };

  struct Callbacks {
    std::function<void(const Expired&)> on_expired;  // before the signal is sent
    // Whether a child of ours may be a worker whose start is not known yet:
    // then its timers wait for that.
    std::function<bool(pid_t child)> may_be_new;
  };

  // Errors: those of LineFifo.
  static Result<std::unique_ptr<TimerServer>> Create(Loop& loop, const std::string& path,
                                                     Callbacks callbacks);
  TimerServer(const TimerServer&) = delete;
  TimerServer& operator=(const TimerServer&) = delete;

  // Of an attempt that is over. Warns of what was only counted.
  void Forget();

  const std::string& path() const { return fifo_->path(); }

 private:
  // A worker can write more lines than anybody wants to read.
  class Quota {
   public:
    bool Take() { return ++taken_ <= kMost; }
    size_t TakeExcess() {
      size_t taken = std::exchange(taken_, 0);
      return taken > kMost ? taken - kMost : 0;
    }

   private:
    static constexpr size_t kMost = 20;
    size_t taken_ = 0;
  };

  TimerServer(Loop& loop, Callbacks callbacks);

  void OnLine(std::string_view line);
  Result<void> Obey(const TimerRequest& request);
  void Arm();
  void OnTimer();
  bool Expire(const FileTimers::Timer& timer);  // false: not yet

  FileTimers timers_;
  Callbacks callbacks_;
  Timer next_;
  Quota expired_;
  Quota ignored_;
  std::unique_ptr<LineFifo> fifo_;
};

// "the timer "step" of pid 4711 (rank 2) has expired; sending SIGKILL".
std::string DescribeExpired(const TimerServer::Expired& expired, const std::string& whose);

}  // namespace rankrun::agent

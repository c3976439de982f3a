#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/gloo/control.h"
#include "comm/gloo/failure_board.h"
#include "comm/gloo/wake_event.h"

namespace rankrun::comm::gloo {

// Exception that ends a collective inside this backend.
struct CollectiveAborted {
  Error why;
  bool is_own = false;  // the failure is local; other ranks report it as a lost peer
};

// Watches the collective under way from the monitor thread, because the
// caller's thread is inside a wait of Gloo. Ends the collective on the death of
// a rank, on the loss of the rank waited for, on a mismatch of calls, or on
// Stop. (Gloo reports no loss to a receive that already has part of its data.)
// Without an agent, which would report it, also on the loss of any rank that has
// not said farewell.
// Thread: Begin, End and the waits: the caller's; Check: the monitor thread;
// Stop: any.
class CollectiveMonitor {
 public:
  CollectiveMonitor(const BackendConfig& config, FailureBoard& failure_board, Control& control,
                    WakeEvent& wake_event);

  void Begin(const Call& call);
  void End();

  // Wait until a send or receive of `buffer` is complete. Throw
  // CollectiveAborted.
  void AwaitSend(GlooBuffer& buffer, int peer);
  void AwaitRecv(GlooBuffer& buffer, int peer);

  // Throws the error for a lost connection; `why` is Gloo's text.
  [[noreturn]] void Fail(int peer, const std::string& why);

  // Ends the collective under way, if any, and all later ones.
  void Stop(const Error& why);

  // Checks the collective under way. Returns the latest time of the next call.
  TimePoint Check(TimePoint now);

 private:
  struct Wait {
    GlooBuffer* buffer;
    int peer;
    bool sends;
  };
  struct Loss {
    int peer;
    std::string why;
    TimePoint since;
  };
  struct WaitResult {
    bool done = false;
    std::optional<std::string> failure = {};
  };

  void Await(const Wait& wait);
  Error WhyLost(int peer, const std::string& why);
  [[noreturn]] void EndAsLost(const Error& error);
  WaitResult WaitOnce(const Wait& wait) const;
  Error TimedOut(int peer);
  void CheckWait(TimePoint now) REQUIRES(mutex_);
  std::optional<Loss> FindDeath(TimePoint now) REQUIRES(mutex_);
  std::optional<Error> FindReport(TimePoint now) REQUIRES(mutex_);
  void EndWith(const Error& why) REQUIRES(mutex_);
  static void Abort(const Wait& wait);

  const DeathWatch deaths_;
  const std::vector<int> global_ranks_;
  FailureBoard& failure_board_;
  Control& control_;
  WakeEvent& wake_event_;

  std::chrono::milliseconds limit_;  // of the current wait; used by the caller's thread only

  Mutex mutex_;
  TimePoint deadline_;  // written by the caller's thread with the mutex, which others need to read
  std::optional<Operation> operation_ GUARDED_BY(mutex_);  // under way
  TimePoint began_ GUARDED_BY(mutex_);
  TimePoint next_compare_ GUARDED_BY(mutex_);
  std::chrono::milliseconds compare_pause_ GUARDED_BY(mutex_);  // after next_compare_
  std::optional<Wait> wait_ GUARDED_BY(mutex_);
  std::optional<std::string> lost_ GUARDED_BY(mutex_);  // why the awaited rank is lost
  std::optional<Loss> death_ GUARDED_BY(mutex_);        // of a rank that is not awaited
  TimePoint next_look_ GUARDED_BY(mutex_) = {};         // for such a death
  TimePoint next_report_look_ GUARDED_BY(mutex_) = {};  // for the report of a failure
  std::optional<Error> ended_ GUARDED_BY(mutex_);       // set once, never cleared
};

}  // namespace rankrun::comm::gloo

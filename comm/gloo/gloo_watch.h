#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "comm/backend.h"
#include "comm/gloo/gloo_control.h"
#include "comm/gloo/gloo_notes.h"
#include "comm/gloo/wakeup.h"

namespace rankrun::comm {

// What goes through the code of a collective that is over.
struct Ended {
  Error why;
  bool is_own = false;  // of this rank: the others would say something else
};

// Looks after the collective under way from the backend's thread, because the
// caller's is inside a wait of Gloo's: ends it when a rank's death is told, when
// the rank waited for is lost (Gloo does not tell those whose data has half
// come), when the others have called something else, or on Stop.
// Thread: Begin, End and the waits: the caller's; Look: the backend's; Stop: any.
class Watch {
 public:
  Watch(const BackendConfig& config, Notes& notes, Control& control, Wakeup& wakeup);

  void Begin(const Call& call);
  void End();

  // Wait until a send or receive of `buffer` is through. Throw Ended.
  void AwaitSend(GlooBuffer& buffer, int peer);
  void AwaitRecv(GlooBuffer& buffer, int peer);

  // Throws what a connection that is gone means: `why` is Gloo's word for it.
  [[noreturn]] void Fail(int peer, const std::string& why);

  // Ends the collective under way, if there is one, and all to come.
  void Stop(const Error& why);

  // Returns when to be called again at the latest.
  TimePoint Look(TimePoint now);

 private:
  struct Wait {
    GlooBuffer* buffer;
    int peer;
    bool sends;
  };
  struct Attempt {
    bool done = false;
    std::optional<std::string> failure = {};
  };

  void Await(const Wait& wait);
  void FinishLost(const Wait& wait, const std::string& why);
  Error WhyLost(int peer, const std::string& why);
  [[noreturn]] void EndAsLost(const Error& error);
  Attempt WaitOnce(const Wait& wait) const;
  Error TimedOut(int peer) const;
  // Under mutex_:
  void LookAfterWait();
  void EndWith(const Error& why);
  void AbortWait();

  const DeathWatch deaths_;
  const std::vector<int> global_ranks_;
  Notes& notes_;
  Control& control_;
  Wakeup& wakeup_;

  std::mutex mutex_;
  std::optional<Operation> operation_;  // under way
  TimePoint began_;
  TimePoint deadline_;
  TimePoint next_compare_;
  std::chrono::milliseconds compare_pause_;  // after that
  std::optional<Wait> wait_;
  std::chrono::milliseconds limit_;  // of the wait; the caller's
  std::optional<std::string> lost_;  // why the rank waited for is
  std::optional<Error> ended_;       // once: for good
};

}  // namespace rankrun::comm

#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "comm/async/device_hooks.h"
#include "comm/async/progress_thread.h"
#include "comm/async/work_state.h"
#include "comm/core/device_backend.h"

namespace rankrun::comm {

// Messages of one process group that a device carries out. The two ranks of a message
// compare it by notes in CPU memory, which also notice that a rank is missing or has
// died. A thread watches each message, and takes it to the device once both ranks are
// connected.
// Thread: any.
class DeviceMessages {
 public:
  // Both outlive it.
  DeviceMessages(DeviceBackend& backend, const DeviceHooks& hooks);
  ~DeviceMessages() { Stop(); }

  // Starts a Send or Recv. The time-out of the returned state counts from the first wait
  // for it. A wait in a stream lasts until the device has the message. Errors have the
  // full text.
  Result<std::shared_ptr<WorkState>> Start(const DeviceCall& call);
  // Waits for the messages that somebody has waited for, and ends the others. No Start
  // may follow.
  void Stop();

 private:
  // Properties of a message, which both ranks must have alike.
  struct Note {
    uint64_t tag;
    uint64_t bytes;
    uint64_t dtype;

    bool operator==(const Note&) const = default;
  };
  class Work;
  struct InFlight;
  using Handle = std::shared_ptr<InFlight>;

  Result<void> ExchangeNotes(const Handle& handle);
  static Result<void> TakeToDevice(InFlight& one);
  std::optional<Error> Mismatch(const InFlight& one) const;
  bool Progress();
  // Returns the end of a message, with the full text of an error; no value: it is under
  // way.
  std::optional<Result<void>> EndOf(InFlight& one);
  Result<bool> Advance(InFlight& one, bool is_compared);
  // Returns why a message that is not complete ends, if it does.
  std::optional<Error> WhyOver(InFlight& one, bool is_compared);

  DeviceBackend& backend_;
  const DeviceHooks& hooks_;
  Mutex mutex_;  // also held to take messages to the device, in their order
  CondVar emptied_;
  std::list<Handle> in_flight_ GUARDED_BY(mutex_);
  bool is_stopping_ GUARDED_BY(mutex_) = false;
  // For Progress only:
  Duration pause_ = kMinDevicePause;
  FailureCheck failures_;
  ProgressThread thread_;
};

}  // namespace rankrun::comm

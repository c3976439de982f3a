#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/status/activity.h"
#include "comm/async/device_hooks.h"
#include "comm/async/progress_thread.h"
#include "comm/async/work_state.h"
#include "comm/core/device_backend.h"

namespace rankrun::comm {

// Collectives of one process group that a device carries out, in their order. A thread
// watches each call from its beginning, because Enqueue itself may wait for other ranks.
// Thread: any, one at a time for Run.
class DeviceCalls {
 public:
  // Both outlive it.
  DeviceCalls(DeviceBackend& backend, const DeviceHooks& hooks);
  ~DeviceCalls() { Stop(); }

  // Enqueues the call. `compared` ends when the ranks have compared it. The returned
  // state ends with both, or with a failure to enqueue the call. Errors have the full
  // text. Error: kExhausted, the system has no thread left.
  Result<std::shared_ptr<WorkState>> Run(const DeviceCall& call,
                                         const std::shared_ptr<WorkState>& compared);
  // Waits until all calls have ended.
  void AwaitIdle();
  // As AwaitIdle; no Run may follow.
  void Stop();

 private:
  struct InFlight {
    const DeviceCall call;
    const TimePoint since;
    const std::shared_ptr<WorkState> compared;
    const std::shared_ptr<WorkState> state = std::make_shared<WorkState>();
    std::shared_ptr<DeviceWork> work = {};   // null until the call is enqueued
    std::optional<Error> not_enqueued = {};  // why it cannot be
    // For Progress only: why the device does not complete it, and since when.
    std::optional<std::pair<Error, TimePoint>> failure = {};
  };
  using Handle = std::shared_ptr<InFlight>;

  std::shared_ptr<WorkState> Enqueue(const Handle& handle);
  bool Progress();
  void ShowOnPage(const Handle& first);
  std::optional<Result<void>> EndOf(InFlight& one);
  std::optional<Result<void>> CauseOf(InFlight& one, TimePoint now);

  DeviceBackend& backend_;
  const DeviceHooks& hooks_;
  Mutex mutex_;  // also for `work` and `not_enqueued`
  CondVar emptied_;
  std::deque<Handle> in_flight_ GUARDED_BY(mutex_);
  // For Progress only:
  Activity activity_;
  Handle shown_;    // on the status page
  Duration pause_;  // grows while it waits for the same call
  FailureCheck failures_;
  ProgressThread thread_;
};

}  // namespace rankrun::comm

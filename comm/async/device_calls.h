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
#include "base/status/death_watch.h"
#include "comm/async/progress_thread.h"
#include "comm/async/work_state.h"
#include "comm/core/device_backend.h"

namespace rankrun::comm {

// Collectives of one process group that a device carries out, in their order. A thread
// watches each call from its beginning, because already the way to the device may wait
// for other ranks.
// Thread: any, one at a time for Run.
class DeviceCalls {
 public:
  // Breaks the group, and by this ends all of its calls. Returns the full text.
  using Failed = std::function<Error(const Operation& operation, Error error,
                                     std::chrono::milliseconds timeout)>;
  // Returns why a wait since that time must end, if it must.
  using Look = std::function<std::optional<Error>(TimePoint since)>;

  // Properties of the process group.
  struct Place {
    std::string name;  // on the status page
    int world_size;
    DeathWatch deaths;
  };

  DeviceCalls(std::unique_ptr<DeviceBackend> backend, const Place& place, Look look, Failed failed);
  ~DeviceCalls() { Stop(); }

  Result<void> Check(const DeviceCall& call) const { return backend_->Check(call); }
  // Enqueues the call. `compared` ends when the ranks have compared it. The returned
  // state ends with both. Errors have the full text.
  Result<std::shared_ptr<WorkState>> Run(const DeviceCall& call,
                                         const std::shared_ptr<WorkState>& compared);
  // Ends all calls, for good.
  void Abort() { backend_->Abort(); }
  // Waits until all calls have ended. No Run may follow.
  void Stop();

 private:
  struct InFlight {
    const DeviceCall call;
    const TimePoint since;
    const std::shared_ptr<WorkState> compared;
    const std::shared_ptr<WorkState> state = std::make_shared<WorkState>();
    std::shared_ptr<DeviceWork> work = {};  // null until the call is enqueued
    bool is_ending = false;                 // Progress has its end
  };
  using Handle = std::shared_ptr<InFlight>;

  Result<void> Start(const Handle& handle);
  Result<std::shared_ptr<WorkState>> Enqueue(const Handle& handle);
  Error EnqueueFailed(const Handle& handle, Error error);
  std::optional<Error> Withdraw(const Handle& handle);
  bool Progress();
  void Show(const Handle& first);
  std::optional<Result<void>> EndOf(const InFlight& one, DeviceWork* work);

  const std::unique_ptr<DeviceBackend> backend_;
  const DeathWatch deaths_;
  const Look look_;
  const Failed failed_;
  Mutex mutex_;  // also of `work` and `is_ending`
  CondVar emptied_;
  std::deque<Handle> in_flight_ GUARDED_BY(mutex_);
  // For Progress only:
  Activity activity_;
  Handle shown_;           // on the status page
  Duration nap_;           // grows while it waits for the same call
  TimePoint next_look_{};  // earliest
  ProgressThread thread_;
};

}  // namespace rankrun::comm

#pragma once

#include <memory>
#include <utility>

#include "base/result.h"
#include "comm/async/device_calls.h"
#include "comm/async/device_hooks.h"
#include "comm/async/device_messages.h"
#include "comm/core/device_backend.h"

namespace rankrun::comm {

// Calls and messages of a process group on memory of devices.
// Thread: any.
class Devices {
 public:
  Devices(std::unique_ptr<DeviceBackend> backend, DeviceHooks hooks)
      : backend_(std::move(backend)), hooks_(std::move(hooks)) {}

  Result<void> Check(const DeviceCall& call) const { return backend_->Check(call); }
  Result<std::shared_ptr<void>> Split(DevicePart part, TimePoint deadline) {
    FailureCheck failures(hooks_);
    part.find_failure = [&, since = MonotonicClock().Now()] { return failures.Find(since); };
    return backend_->Split(part, deadline);
  }
  Result<std::shared_ptr<void>> Register(Block memory, int device) {
    return backend_->Register(memory, device);
  }
  DeviceCalls& calls() { return calls_; }
  DeviceMessages& messages() { return messages_; }
  // Ends all calls, for good.
  void Abort() { backend_->Abort(); }

 private:
  const std::unique_ptr<DeviceBackend> backend_;
  const DeviceHooks hooks_;
  DeviceCalls calls_{*backend_, hooks_};
  DeviceMessages messages_{*backend_, hooks_};
};

}  // namespace rankrun::comm

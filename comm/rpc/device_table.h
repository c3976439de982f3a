#pragma once

#include <string>
#include <vector>

#include "base/mutex.h"
#include "comm/rpc/device_maps.h"

namespace rankrun::comm::rpc {

// Ways of attachments between this worker and the others.
// Thread: any.
class DeviceTable {
 public:
  // Replaces all; `workers` has this one.
  void Set(const std::string& self, const std::vector<WorkerDevices>& workers) EXCLUDES(mutex_);

  // Return the pairs for calls of `callee`, and for replies to `caller`.
  DevicePairs ForCalls(const std::string& callee) const EXCLUDES(mutex_);
  DevicePairs ForReplies(const std::string& caller) const EXCLUDES(mutex_);
  std::vector<Device> in_use() const EXCLUDES(mutex_);  // GPUs of this worker, in order

 private:
  mutable Mutex mutex_;
  DeviceMaps calls_ GUARDED_BY(mutex_);
  DeviceMaps replies_ GUARDED_BY(mutex_);
  std::vector<Device> in_use_ GUARDED_BY(mutex_);
};

}  // namespace rankrun::comm::rpc

#include "comm/rpc/device_table.h"

#include <algorithm>

namespace rankrun::comm::rpc {
namespace {

DevicePairs PairsIn(const DeviceMaps& maps, const std::string& worker) {
  auto found = maps.find(worker);
  return found != maps.end() ? found->second : DevicePairs{};
}

}  // namespace

void DeviceTable::Set(const std::string& self, const std::vector<WorkerDevices>& workers) {
  auto own = std::find_if(workers.begin(), workers.end(),
                          [&](const WorkerDevices& each) { return each.worker == self; });
  if (own == workers.end()) return;
  DeviceMaps replies = ReverseMaps(workers, self);
  std::vector<Device> in_use = DevicesInUse(*own, replies);
  MutexLock lock(mutex_);
  calls_ = own->maps;
  replies_ = std::move(replies);
  in_use_ = std::move(in_use);
}

DevicePairs DeviceTable::ForCalls(const std::string& callee) const {
  MutexLock lock(mutex_);
  return PairsIn(calls_, callee);
}

DevicePairs DeviceTable::ForReplies(const std::string& caller) const {
  MutexLock lock(mutex_);
  return PairsIn(replies_, caller);
}

std::vector<Device> DeviceTable::in_use() const {
  MutexLock lock(mutex_);
  return in_use_;
}

}  // namespace rankrun::comm::rpc

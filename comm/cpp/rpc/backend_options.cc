#include <algorithm>

#include <rankrun/rpc/backend_options.h>

#include "comm/core/throw.h"
#include "comm/rpc/device_maps.h"

namespace rankrun::rpc {

RpcBackendOptions::~RpcBackendOptions() = default;
TensorPipeRpcBackendOptions::~TensorPipeRpcBackendOptions() = default;
ProcessGroupRpcBackendOptions::~ProcessGroupRpcBackendOptions() = default;

void TensorPipeRpcBackendOptions::SetDeviceMap(const std::string& callee,
                                               const DevicePairs& pairs) {
  DevicePairs merged = device_maps[callee];
  for (const auto& pair : pairs) {
    if (std::find(merged.begin(), merged.end(), pair) == merged.end()) merged.push_back(pair);
  }
  if (auto ok = comm::rpc::CheckOneToOne(merged); !ok) {
    comm::Throw(Error(ok.error()).In("SetDeviceMap(\"" + callee + "\")"));
  }
  device_maps[callee] = std::move(merged);
}

}  // namespace rankrun::rpc

#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <rankrun/export.h>
#include <rankrun/tensor.h>

// Options of the backends of RPC.
// Source: torch.distributed.rpc.
namespace rankrun::rpc {

// Options of all backends.
struct RANKRUN_API RpcBackendOptions {
  virtual ~RpcBackendOptions();

  std::chrono::milliseconds rpc_timeout = std::chrono::seconds(60);  // 0: none
  // InitOptions'. A dynamic group has none: want Options::store.
  std::string init_method = "env://";
};

// From a device of the caller to the one of the callee on which its attachments arrive.
using DevicePairs = std::vector<std::pair<Device, Device>>;

// Options of the backend "TENSORPIPE", which connects the workers by TCP.
struct RANKRUN_API TensorPipeRpcBackendOptions : RpcBackendOptions {
  ~TensorPipeRpcBackendOptions() override;

  // Adds pairs to the map for a callee. Throws DistError if two sources have one target, or
  // one source has two. Init checks the devices.
  void SetDeviceMap(const std::string& callee, const DevicePairs& pairs);
  void SetDevices(std::vector<Device> chosen) { devices = std::move(chosen); }

  int num_worker_threads = 16;  // methods that run at once, without those that wait
  // Maps for calls, by the name of the callee. A reply takes the reverse way. Attachments on
  // GPUs travel only by a map; the library copies them through the memory of the hosts. With
  // maps or devices, and in a dynamic group, Init counts the GPUs, which starts CUDA.
  std::map<std::string, DevicePairs> device_maps = {};
  std::vector<Device> devices = {};  // that this worker may use; empty: those in the maps
};

// Options of the backend "PROCESS_GROUP", whose calls are messages of a backend for
// collectives: that of RANKRUN_BACKEND, or the one that Init would choose. For networks that
// only such a backend reaches; TENSORPIPE is faster. Under an agent the death of a worker
// ends all calls. It has no dynamic groups and no device maps.
struct RANKRUN_API ProcessGroupRpcBackendOptions : RpcBackendOptions {
  ~ProcessGroupRpcBackendOptions() override;

  int num_send_recv_threads = 4;  // methods that run at once; at most as many move the bytes
};

}  // namespace rankrun::rpc

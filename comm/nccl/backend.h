#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "comm/core/device_backend.h"
#include "comm/nccl/communicator.h"
#include "comm/nccl/cuda.h"

namespace rankrun::comm::nccl {

// Communicator of a group, or none yet; its works keep it.
struct Connection {
  std::atomic<bool> aborted = false;
  Mutex mutex;  // held to set or use the pointer, not during a call of the object
  std::shared_ptr<Communicator> communicator GUARDED_BY(mutex);

  std::shared_ptr<Communicator> Get() {
    MutexLock lock(mutex);
    return communicator;
  }
};

// Collectives between GPUs by NCCL. The calls of a group run one after the other in a
// stream of its own, which waits for the stream of each call. The first call chooses
// this rank's GPU and connects the ranks:
//
//   <prefix>/nccl/id   NCCL's id of the communicator, from group rank 0; or, if it
//                      is not of the size of one, the reason why there is none
class NcclBackend final : public DeviceBackend {
 public:
  // Errors: kInvalid, this process has no GPU.
  static Result<std::unique_ptr<DeviceBackend>> Create(const DeviceBackendConfig& config);
  ~NcclBackend() override;

  Result<void> Check(const DeviceCall& call) const override;
  Result<std::shared_ptr<DeviceWork>> Enqueue(const DeviceCall& call) override;
  void Abort() override;

 private:
  NcclBackend(const DeviceBackendConfig& config, int gpus);

  Result<void> CheckDevice(int device) const;
  Result<void> Connect(int device, TimePoint deadline);
  Result<ncclUniqueId> AgreeOnId(TimePoint deadline);
  Result<std::string> AwaitId(store::Store& store, const std::string& key,
                              TimePoint deadline) const;

  const DeviceBackendConfig config_;
  const int gpus_;
  std::atomic<int> device_ = kNoDevice;
  const std::shared_ptr<Connection> connection_ = std::make_shared<Connection>();
  std::unique_ptr<Stream> stream_;

  static constexpr int kNoDevice = -1;
};

}  // namespace rankrun::comm::nccl

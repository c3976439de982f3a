#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "comm/core/device_backend.h"
#include "comm/nccl/connection.h"
#include "comm/nccl/cuda.h"
#include "comm/nccl/lane.h"

namespace rankrun::comm::nccl {

// Collectives and messages between GPUs by NCCL. The collectives of a group run one after
// the other in a stream of its own, which waits for the stream of each call. The first
// one connects the ranks:
//
//   <prefix>/nccl/id   NCCL's id of the communicator (unique_id.h), from group rank 0
//
// A group that Split has made is connected from its beginning.
// Messages have a lane for each pair of ranks and direction. The first call of any kind
// chooses this rank's GPU.
class NcclBackend final : public DeviceBackend {
 public:
  // Errors: kInvalid, this process has no GPU.
  static Result<std::unique_ptr<DeviceBackend>> Create(const DeviceBackendConfig& config);
  ~NcclBackend() override;

  Result<void> Check(const DeviceCall& call) const override;
  Result<std::shared_ptr<DeviceWork>> Enqueue(const DeviceCall& call) override;
  Result<std::shared_ptr<DeviceMessage>> Start(const DeviceCall& call) override;
  Result<std::shared_ptr<void>> Split(const DevicePart& part, TimePoint deadline) override;
  Result<std::shared_ptr<void>> Register(Block memory, int device) override;
  void Abort() override;

 private:
  NcclBackend(const DeviceBackendConfig& config, int gpus);

  Result<void> CheckDevice(int device) const;
  Result<void> ChooseDevice(int device);
  Result<Lane*> LaneFor(const DeviceCall& call);
  Result<void> Connect(TimePoint deadline);
  Result<ncclUniqueId> AgreeOnId(TimePoint deadline);
  Result<std::string> AwaitId(store::Store& store, const std::string& key,
                              TimePoint deadline) const;

  const DeviceBackendConfig config_;
  const int gpus_;
  std::atomic<int> device_ = kNoDevice;
  std::shared_ptr<Connection> connection_;  // never changes
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<store::Store> store_of_lanes_;  // null: there is no lane
  Mutex mutex_;
  bool aborted_ GUARDED_BY(mutex_) = false;
  std::map<std::pair<int, bool>, std::unique_ptr<Lane>> lanes_ GUARDED_BY(mutex_);  // peer, send

  static constexpr int kNoDevice = -1;
};

}  // namespace rankrun::comm::nccl

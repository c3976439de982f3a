#pragma once

#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "comm/core/device_backend.h"
#include "comm/nccl/connection.h"
#include "comm/nccl/cuda.h"
#include "comm/nccl/work.h"
#include "store/store.h"

namespace rankrun::comm::nccl {

class LaneMessage;

// Messages from one rank to another: a communicator of these two, and a stream, in whose
// order the messages run. Connects with the first message:
//
//   <prefix>/nccl/<sender>-<receiver>   NCCL's id (unique_id.h), from the sender; the
//                                       names are group ranks
//
// Thread: one at a time; BeginAbort any.
class Lane {
 public:
  struct Place {
    const DeviceBackendConfig& config;
    store::Store& store;  // for all lanes, beside the group's own client
    int peer;             // group rank of the other end
    bool is_send;         // from this rank
    int device;
  };
  explicit Lane(const Place& place) : place_(place), name_(place.config.name + " messages") {}
  // On the current GPU. Waits for the parting.
  ~Lane() { static_cast<void>(connection_->Set(nullptr)); }

  void Add(std::shared_ptr<LaneMessage> message) { waiting_.push_back(std::move(message)); }
  // Continues to connect, and takes messages to the GPU in their order. Does not wait for
  // the other rank. Errors: kSystem, kCancelled, those of the store.
  Result<void> Advance();
  // As Connection::BeginAbort.
  std::shared_future<void> BeginAbort() { return connection_->BeginAbort(); }
  // Begins to part from the other rank.
  void Leave();

 private:
  // Each takes one step, if it can. Returns whether another may follow.
  Result<bool> Step();
  Result<bool> Connect();
  Result<void> Launch(const LaneMessage& message);
  // Returns NCCL's id once the sender has published it.
  Result<std::optional<ncclUniqueId>> Meet();

  const Place place_;
  const std::string name_;  // before the communicator, which keeps it
  const std::shared_ptr<Connection> connection_ = std::make_shared<Connection>();
  TimePoint next_check_{};                 // of the store for the id
  Duration pause_{};                       // before the next one
  std::optional<Stream> stream_;           // once it connects
  std::shared_ptr<LaneMessage> launched_;  // that NCCL has, but not the GPU yet
  std::deque<std::shared_ptr<LaneMessage>> waiting_;
};

// One message of a lane, which lives as long as the message is not on the GPU.
class LaneMessage final : public DeviceMessage {
 public:
  // `ready`: when the memory may be used.
  LaneMessage(Lane& lane, int device, Block data, Event ready)
      : lane_(lane), device_(device), data_(data), ready_(std::move(ready)) {}
  ~LaneMessage() override {
    CurrentGpu current(device_);
    ready_.reset();
  }

  Result<bool> Enqueue() override;
  Result<bool> Test() override { return work_->Test(); }
  Result<void> WaitIn(void* stream) override { return work_->WaitIn(stream); }

 private:
  friend class Lane;

  Lane& lane_;
  const int device_;
  const Block data_;
  std::optional<Event> ready_;      // set until the destructor
  std::unique_ptr<NcclWork> work_;  // once the GPU has it
};

}  // namespace rankrun::comm::nccl

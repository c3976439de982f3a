#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rankrun/process_group.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/status/activity.h"
#include "comm/async/devices.h"
#include "comm/async/messages.h"
#include "comm/async/progress_thread.h"
#include "comm/async/work_queue.h"
#include "comm/async/work_state.h"
#include "comm/core/device_backend.h"
#include "comm/core/home_process.h"
#include "comm/core/operation_events.h"
#include "comm/group/broken_state.h"
#include "comm/group/call_count.h"
#include "comm/group/collective_data.h"
#include "comm/group/failure_time.h"
#include "comm/group/group_identity.h"
#include "comm/group/store_barrier.h"
#include "store/store.h"

namespace rankrun::comm {

// Implementation of ProcessGroup, which describes the functions. Converts arguments to blocks for
// the backend, breaks the group after an error, and adds its cause to the text. Thread: any; calls
// are serialised. Errors: kInvalid for arguments (no tensor was touched; the other ranks' calls
// fail, too), kTimeout, kPeerLost, kCancelled, kMismatch, kSystem (it is broken), kProtocol.
class Group {
 public:
  // `barrier` and the backends may use `store`. Null `devices`: none for memory of GPUs.
  Group(GroupIdentity identity, std::unique_ptr<store::Store> store,
        std::unique_ptr<StoreBarrier> barrier, std::unique_ptr<Backend> backend,
        std::unique_ptr<DeviceBackend> devices = nullptr);
  explicit Group(GroupIdentity identity);  // on a rank that is not a member
  ~Group();                                // waits for collectives that are queued or under way

  const GroupIdentity& identity() const { return identity_; }
  bool is_member() const { return identity_.group_rank >= 0; }
  const HomeProcess& home() const { return home_; }  // a fork may read identity() only
  GroupState state() const;
  std::string broken_reason() const;
  store::Store& store() { return *store_; }                 // members only
  bool has_devices() const { return devices_ != nullptr; }  // has a backend for GPU memory
  // Carries out the queued collectives; after End, awaits all calls. None may follow.
  void FinishQueued();
  // Ends all calls of this rank, and breaks the group on all ranks. `how` follows the name of this
  // rank: "aborted the group". End then ends waits in the store; returns whether that answers.
  void EndCalls(const std::string& how);
  bool End(const std::string& how);
  std::optional<Error> FindFailure(const char* what, TimePoint since);  // it breaks the group
  Result<void> Uninvolved(const char* what) const;  // no member: a warning, or kInvalid
  Result<Work> AllReduce(const Tensor& tensor, ReduceOp op, const CallOptions& options);
  Result<Work> Reduce(const Tensor& tensor, Peer root, ReduceOp op, const CallOptions& options);
  Result<Work> Broadcast(const Tensor& tensor, Peer root, const CallOptions& options);
  Result<Work> AllGather(std::span<const Tensor> outputs, const ConstTensor& input,
                         const CallOptions& options);
  Result<Work> AllGatherInto(const Tensor& output, const ConstTensor& input,
                             const CallOptions& options);
  Result<Work> Gather(std::span<const Tensor> outputs, const ConstTensor& input, Peer root,
                      const CallOptions& options);
  Result<Work> Scatter(const Tensor& output, std::span<const ConstTensor> inputs, Peer root,
                       const CallOptions& options);
  Result<Work> ReduceScatter(const Tensor& output, std::span<const ConstTensor> inputs, ReduceOp op,
                             const CallOptions& options);
  Result<Work> ReduceScatterFrom(const Tensor& output, const ConstTensor& input, ReduceOp op,
                                 const CallOptions& options);
  Result<Work> AllToAll(std::span<const Tensor> outputs, std::span<const ConstTensor> inputs,
                        const CallOptions& options);
  Result<Work> AllToAllSingle(const Tensor& output, const ConstTensor& input,
                              std::span<const size_t> output_splits,
                              std::span<const size_t> input_splits, const CallOptions& options);
  Result<Work> Barrier(const CallOptions& options);
  Result<Work> BarrierOn(const Device& device, const CallOptions& options);
  // As those of DeviceBackend. An error of Split breaks the group.
  Result<std::shared_ptr<void>> Register(const Tensor& memory);
  Result<std::shared_ptr<void>> SplitDevices(const DevicePart& part, TimePoint deadline);
  Result<void> MonitoredBarrier(Timeout timeout, bool wait_all_ranks);
  Error Decline(const Operation& operation, Error reason);  // fails the others' calls instead
  Result<void> Send(const ConstTensor& tensor, Peer destination, uint64_t tag, Timeout timeout);
  Result<int> Recv(const Tensor& tensor, Source source, uint64_t tag, Timeout timeout);
  Result<Work> ISend(const ConstTensor& tensor, Peer destination, uint64_t tag, Timeout timeout);
  Result<Work> IRecv(const Tensor& tensor, Source source, uint64_t tag, Timeout timeout);

 private:
  template <typename Body>
  Result<Work> Run(Operation operation, const CallOptions& options, Body body);
  template <bool kMayLog = true, bool kIsRecorded = true, typename Body>
  Result<void> Execute(const Operation& operation, std::chrono::milliseconds timeout, Body& body,
                       Activity::Caller caller = Activity::Caller::kWaits);
  Result<Work> RunOn(const Device& device, const Operation& operation, const CallOptions& options,
                     CollectiveData data);
  Result<Work> RunOnDevice(Operation operation, const CallOptions& options, DeviceCall call);
  Result<std::shared_ptr<WorkState>> CompareDeviceCall(const DeviceCall& call);
  // Announces that this rank takes no part; does not wait for that if asynchronous.
  Result<Work> Refuse(const Operation& operation, Error reason, const CallOptions& options);
  Result<Work> UninvolvedWork(Operation::Kind kind) const;
  Result<Work> ReduceBlocks(const Tensor& output, std::vector<ConstBlock> inputs,
                            const Reduction& reduction, ReduceOp op, const CallOptions& options);
  Result<Work> Exchange(const ConstTensor& like, std::vector<Block> outputs,
                        std::vector<ConstBlock> inputs, const CallOptions& options);
  Result<Messages::Message> MessageTo(Operation::Kind kind, const ConstTensor& tensor, Source peer,
                                      uint64_t tag, Timeout timeout) const;
  Result<Work> Begin(const Messages::Message& message, const ConstTensor& tensor);
  Result<std::shared_ptr<WorkState>> StartInMemory(const Messages::Message& message, Block data);
  Result<std::shared_ptr<WorkState>> BeginOnDevice(const Messages::Message& message,
                                                   const ConstTensor& tensor);
  Result<void> MoveOnDevice(const Messages::Message& message, const ConstTensor& tensor);
  DeviceHooks HooksOfDevices();
  Error MessageFailed(const Messages::Message& message, Error error);
  Result<std::chrono::milliseconds> Effective(Timeout timeout) const;
  Error Broken(const std::string& what) const;
  std::string WithDeath(std::string text) const;
  // Returns the complete error and, unless it is kInvalid, breaks the group.
  Error Failed(const Operation& operation, Error error, const CallTimes& times);
  Error Break(const std::string& operation, Error cause, const CallTimes& times);
  void SetRoot(Operation& operation, int group_rank) const;
  std::string Place() const { return " of " + PlaceIn(identity_); }

  const GroupIdentity identity_;
  const HomeProcess home_;
  const TickOrigin origin_;
  CallCount calls_;
  BrokenState broken_;
  Mutex break_mutex_;  // held by the thread that breaks the group, until it is broken
  Mutex mutex_;        // held by a call until it is done or queued
  uint64_t operations_ GUARDED_BY(mutex_) = 0;
  uint64_t monitored_barriers_ GUARDED_BY(mutex_) = 0;  // a failed one may be missing elsewhere
  // The order matters: later members use earlier ones.
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<StoreBarrier> barrier_ PT_GUARDED_BY(mutex_);
  std::unique_ptr<Backend> backend_;
  Activity activity_;                                                              // of collectives
  const std::shared_ptr<Waiters> waiters_ = std::make_shared<Waiters>(activity_);  // for queue_
  std::unique_ptr<Messages> messages_;
  const OperationEvents events_;
  ProgressThread progress_thread_;  // of messages under way, beside collectives
  const std::shared_ptr<WorkQueue> queue_ = std::make_shared<WorkQueue>();
  std::unique_ptr<Devices> devices_;  // null: none
};

}  // namespace rankrun::comm

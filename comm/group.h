#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <rankrun/process_group.h>

#include "base/activity.h"
#include "base/clock.h"
#include "base/result.h"
#include "comm/backend.h"
#include "comm/group_identity.h"
#include "comm/messages.h"
#include "comm/mover.h"
#include "comm/operation.h"
#include "comm/store_barrier.h"
#include "comm/work_queue.h"
#include "comm/work_state.h"
#include "store/store.h"

namespace rankrun::comm {

// `timeout`, but at least 0 and at most a year: the same as for ever, and
// arithmetic on deadlines cannot overflow.
std::chrono::milliseconds Bounded(std::chrono::milliseconds timeout);

// A process group behind its public face: members, backend, sequence of
// operations, deadline, state. Turns what a program passes into what a backend
// moves, knows what an error means for the group and tells it in full.
// The functions are those of ProcessGroup.
// Errors: kInvalid for arguments (nothing was touched; the other ranks are
// told), kTimeout, kPeerLost, kCancelled, kMismatch, kSystem (the group is
// broken), kProtocol from the store.
// Thread: any; calls are serialised.
class Group {
 public:
  // `barrier` uses `store`, and so may `backend`.
  Group(GroupIdentity identity, std::unique_ptr<store::Store> store,
        std::unique_ptr<StoreBarrier> barrier, std::unique_ptr<Backend> backend);
  // Of a rank that is no member.
  explicit Group(GroupIdentity identity);
  // Waits for collectives that are queued or under way.
  ~Group();

  const GroupIdentity& identity() const { return identity_; }
  bool is_member() const { return identity_.group_rank >= 0; }
  GroupState state() const;
  std::string broken_reason() const;
  store::Store& store() { return *store_; }  // of members
  // Carries out the collectives that are queued or under way; no call may follow.
  void FinishQueued() { queue_.Stop(); }
  // What a call by a rank that is no member comes to: a warning, or an error.
  Result<void> Uninvolved(const char* what) const;

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
                              std::span<const std::size_t> output_splits,
                              std::span<const std::size_t> input_splits,
                              const CallOptions& options);
  Result<Work> Barrier(const CallOptions& options);
  Result<void> MonitoredBarrier(Timeout timeout, bool wait_all_ranks);
  // In place of a collective that this rank cannot begin: the others' fail. Tells `reason` in full.
  Error Decline(const Operation& operation, Error reason) {
    return Refuse(operation, std::move(reason), {}).error();
  }

  Result<void> Send(const ConstTensor& tensor, Peer destination, uint64_t tag, Timeout timeout);
  Result<int> Recv(const Tensor& tensor, Source source, uint64_t tag, Timeout timeout);
  Result<Work> ISend(const ConstTensor& tensor, Peer destination, uint64_t tag);
  Result<Work> IRecv(const Tensor& tensor, Source source, uint64_t tag);

 private:
  template <typename Body>
  Result<Work> Run(Operation operation, const CallOptions& options, Body body);
  template <typename Body>
  Result<void> Execute(const Operation& operation, std::chrono::milliseconds timeout, Body& body);
  // Tells the other ranks that this one does not take part; does not wait for
  // that if `options` are those of an asynchronous call.
  Result<Work> Refuse(const Operation& operation, Error reason, const CallOptions& options);
  Result<Work> UninvolvedWork(Operation::Kind kind) const;
  Result<Work> ReduceBlocks(const Tensor& output, std::vector<ConstBlock> inputs,
                            const LoweredReduction& lowered, ReduceOp op,
                            const CallOptions& options);
  Result<Work> Exchange(DType dtype, std::vector<Block> outputs, std::vector<ConstBlock> inputs,
                        const CallOptions& options);

  Result<Messages::Message> MessageTo(Operation::Kind kind, const ConstTensor& tensor, Source peer,
                                      uint64_t tag, Timeout timeout) const;
  Result<Work> Begin(const Messages::Message& message, Block data);
  Error MessageFailed(const Messages::Message& message, Error error);

  Result<std::chrono::milliseconds> Effective(Timeout timeout) const;
  Error Broken(const std::string& what) const;
  std::string WithDeath(std::string text) const;
  // Tells an error in full and, unless it is kInvalid, breaks the group.
  Error Failed(const Operation& operation, Error error, std::chrono::milliseconds timeout);
  Error Break(const std::string& operation, Error cause, std::chrono::milliseconds timeout);
  void Explain(const std::string& operation, Error& cause, std::chrono::milliseconds timeout) const;
  void SetRoot(Operation& operation, int group_rank) const {
    operation.root = group_rank;
    operation.global_root = identity_.global_ranks[static_cast<std::size_t>(group_rank)];
  }
  std::string Place() const { return " of " + PlaceIn(identity_); }

  const GroupIdentity identity_;
  mutable std::mutex state_mutex_;  // guards the next
  std::string broken_reason_;
  std::atomic<bool> broken_ = false;
  std::mutex break_mutex_;  // held by who breaks the group, until it is

  std::mutex mutex_;  // held by a call until it is done or queued; guards the numbers
  uint64_t operations_ = 0;
  uint64_t monitored_barriers_ = 0;  // apart: a failed one may be missing on some ranks
  // The order matters: what is below uses what is above.
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<StoreBarrier> barrier_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Messages> messages_;
  Activity activity_;  // of collectives
  Mover mover_;        // of messages under way, beside collectives
  WorkQueue queue_;
};

}  // namespace rankrun::comm

#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <rankrun/call_options.h>
#include <rankrun/export.h>
#include <rankrun/internal/call_forms.h>
#include <rankrun/peer.h>
#include <rankrun/reduce_op.h>
#include <rankrun/tensor.h>
#include <rankrun/work.h>

namespace rankrun {

class ProcessGroup;

namespace comm {
class Group;
class GroupTable;
Group& AnyGroupOf(const ProcessGroup& group);
}  // namespace comm

// kBroken: a collective has failed, so the ranks no longer agree on the next operation. All later
// operations fail at once. The process stays usable: Destroy() and Init() make a new group.
enum class GroupState { kOk, kBroken };

// Group of ranks with its collectives and messages. Every member calls the same collectives in
// the same order, with the same dtype, count, operation and root. Sizes differ between ranks only
// where the function allows it. If the calls do not match, every member's call throws a
// DistMismatchError that lists the call of each rank. Exception: on backends other than shm,
// without RANKRUN_DEBUG=DETAIL, a member that only sends, or has all its data, may succeed; its
// next call throws.
//
// Errors of a collective; after the first three the group is kBroken and outputs are undefined:
// - DistTimeoutError after its time-out. This rank first asks the others for their current
//   operation, for a quarter of the time-out or 1 s at most.
// - DistNetworkError if a member is lost.
// - DistBackendError for any other failure.
// - DistError for a bad argument; no tensor was touched. The other members' calls fail, too, and
//   name this rank and the argument: on shm with a DistError, and the group stays usable; on all
//   other backends with a DistBackendError, and the group is kBroken.
// Calls on GPU memory run in a CUDA stream; bad arguments break the group: rankrun/gpu.h.
// In a fork of this process calls throw DistError; ranks, names and the backend may be read.
// If this rank is not a member, operations do nothing and log a warning, or
// throw DistError with RANKRUN_STRICT=1.
//
// Thread: any; calls on one group run one after the other.
// Lifetime: owned by the library. After Destroy, every function throws DistError.
// Source: torch.distributed (pytorch.org/docs/stable/distributed.html).
class RANKRUN_API ProcessGroup : public internal::CallForms<ProcessGroup> {
 public:
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int global_rank() const;
  bool is_member() const;
  int group_rank() const;                        // -1: not a member
  int world_size() const;                        // number of members; -1: not a member
  const std::vector<int>& global_ranks() const;  // of the members, by group rank
  // Both throw DistError if there is no such member.
  int GroupRankOf(GlobalRank rank) const;
  int GlobalRankOf(GroupRank rank) const;
  const std::string& name() const;
  const std::string& description() const;
  // In use: "tcp", "cpu:shm,cuda:nccl". Throws DistError on a rank that is no member.
  const std::string& backend() const;
  GroupState state() const;
  std::string broken_reason() const;  // empty while kOk

  // The forms with a duration or kAsync in the place of the options.
  using CallForms::AllGather, CallForms::AllGatherInto, CallForms::AllReduce, CallForms::AllToAll,
      CallForms::AllToAllSingle, CallForms::Barrier, CallForms::BarrierOn, CallForms::Broadcast,
      CallForms::Gather, CallForms::Reduce, CallForms::ReduceScatter, CallForms::ReduceScatterFrom,
      CallForms::Scatter;

  // In place. Results have the same bits on all ranks.
  Work AllReduce(Tensor tensor, ReduceOp op = ReduceOp::kSum, CallOptions options = {});
  // In place on `root`; the tensors of other ranks do not change.
  Work Reduce(Tensor tensor, Peer root, ReduceOp op = ReduceOp::kSum, CallOptions options = {});
  // Copies the tensor of `root` to `tensor` of every rank.
  Work Broadcast(Tensor tensor, Peer root, CallOptions options = {});

  // Copies rank i's input to outputs[i] on every rank. Input and output i have equal sizes; sizes
  // may differ between ranks. outputs[this rank] may be the memory of `input`.
  Work AllGather(const TensorList& outputs, ConstTensor input, CallOptions options = {});
  // As AllGather for equal sizes; `output` has the parts in the order of ranks.
  Work AllGatherInto(Tensor output, ConstTensor input, CallOptions options = {});
  // As AllGather, but on `root` only; `outputs` is empty on other ranks.
  Work Gather(const TensorList& outputs, ConstTensor input, Peer root = GlobalRank{0},
              CallOptions options = {});
  // Copies inputs[i] of `root` to `output` of rank i; `inputs` is empty on other ranks.
  Work Scatter(Tensor output, const ConstTensorList& inputs, Peer root = GlobalRank{0},
               CallOptions options = {});

  // Reduces inputs[i] of all ranks to `output` of rank i. Sizes may differ between the entries of
  // `inputs`, not between ranks.
  Work ReduceScatter(Tensor output, const ConstTensorList& inputs, ReduceOp op = ReduceOp::kSum,
                     CallOptions options = {});
  // As ReduceScatter for equal sizes; `input` has the parts in the order of ranks.
  Work ReduceScatterFrom(Tensor output, ConstTensor input, ReduceOp op = ReduceOp::kSum,
                         CallOptions options = {});

  // Copies rank j's inputs[this rank] to outputs[j]. Outputs and inputs must not overlap.
  Work AllToAll(const TensorList& outputs, const ConstTensorList& inputs, CallOptions options = {});
  // As AllToAll for parts of one tensor. Splits are numbers of rows, one per rank; empty: equal.
  Work AllToAllSingle(Tensor output, ConstTensor input, const Splits& output_splits = {},
                      const Splits& input_splits = {}, CallOptions options = {});

  // Completes after every rank has entered it.
  Work Barrier(CallOptions options = {});
  // As Barrier, in the order of a GPU's stream. Connects the GPUs, if no call has.
  Work BarrierOn(Device device, CallOptions options = {});

  // Barrier over the store that names missing ranks. It never breaks the group.
  // Errors: DistTimeoutError after `timeout`, on all ranks and with the same
  // text, which names every missing rank (wait_all_ranks=false: the first
  // only). DistNetworkError at once if a rank has died; DistStoreError if the
  // store is lost.
  void MonitoredBarrier(Timeout timeout = {}, bool wait_all_ranks = true);

  // Messages between two members. A receive matches by sender and tag, in the
  // order sent; tags are 0 or more. It throws DistError if its dtype or size
  // differs from the message's. A time-out, which for ISend and IRecv counts from
  // the first wait for the Work, breaks the group, because the caller may then free
  // the tensor. Send returns when `tensor` may be changed. ISend may be to itself.
  void Send(ConstTensor tensor, Peer destination, int tag = 0, Timeout timeout = {});
  // Returns the sender's global rank; -1 if this rank is not a member.
  int Recv(Tensor tensor, Source source = {}, int tag = 0, Timeout timeout = {});
  Work ISend(ConstTensor tensor, Peer destination, int tag = 0, Timeout timeout = {});
  template <Temporary T>  // it would end before the message is sent
  Work ISend(T&& values, Peer destination, int tag = 0, Timeout timeout = {}) = delete;
  Work IRecv(Tensor tensor, Source source = {}, int tag = 0, Timeout timeout = {});
  // Starts all messages before it waits for any. Returns one Work per message.
  std::vector<Work> Batch(std::span<const P2POp> operations);

 private:
  friend class comm::GroupTable;
  friend comm::Group& comm::AnyGroupOf(const ProcessGroup& group);
  ProcessGroup(std::unique_ptr<comm::Group> group, comm::GroupTable& table);

  std::unique_ptr<comm::Group> group_;  // null: destroyed
  comm::GroupTable& table_;             // that holds this
  const std::string place_;             // for messages
};

}  // namespace rankrun

#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rankrun/call_options.h>
#include <rankrun/export.h>
#include <rankrun/peer.h>
#include <rankrun/reduce_op.h>
#include <rankrun/tensor.h>
#include <rankrun/work.h>

namespace rankrun {

class ProcessGroup;

namespace comm {
class Group;
class GroupTable;
Group& GroupOf(ProcessGroup& group);
}  // namespace comm

// kBroken: a collective has failed, so the ranks no longer agree on what comes
// next. All later operations fail at once. Destroy() and Init() make a new
// group; the process itself is sound.
enum class GroupState { kOk, kBroken };

// Ranks that work together, and what they do together. Every member calls the
// same collectives in the same order, with the same dtype, count, operation and
// root (other ranks' parts may differ in size only where it says so). When two
// calls do not fit together, every member's call throws DistMismatchError that
// says what each rank called; but on Gloo, without RANKRUN_DEBUG=DETAIL, a member
// that had all it wanted before returns, and its next call throws.
//
// A collective waits at most its time-out; who times out then asks the others for
// up to a quarter of it, at most 1 s, where they are. It throws DistTimeoutError after
// that, DistNetworkError if a member is lost, DistBackendError for the rest;
// the group is then kBroken and the content of outputs undefined. A bad
// argument is a DistError; nothing of the tensors was touched, and the other
// members' calls fail too, naming this rank and the argument. On shm the group
// is as before; on Gloo, which cannot take back what the others have begun, it
// is kBroken, and the others' error is a DistBackendError.
// On a group that this rank is no member of, operations do nothing and log a
// warning (with RANKRUN_STRICT=1: throw DistError).
//
// Thread: any; calls on one group run one after the other.
// Lifetime: owned by the library, until Destroy.
// Source: torch.distributed (pytorch.org/docs/stable/distributed.html).
class RANKRUN_API ProcessGroup {
 public:
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int global_rank() const;
  bool is_member() const;
  int group_rank() const;                        // -1: no member
  int world_size() const;                        // number of members; -1: no member
  const std::vector<int>& global_ranks() const;  // of the members, by group rank
  // Both throw DistError if there is no such member.
  int GroupRankOf(GlobalRank rank) const;
  int GlobalRankOf(GroupRank rank) const;
  const std::string& name() const;
  const std::string& description() const;
  const std::string& backend() const;  // "shm", "gloo": what was chosen; of members only
  GroupState state() const;
  std::string broken_reason() const;  // empty while kOk

  // In place. Results are the same on all ranks to the last bit.
  Work AllReduce(Tensor tensor, ReduceOp op = ReduceOp::kSum, CallOptions options = {});
  // On `root`, in place; other ranks' tensors stay as they are.
  Work Reduce(Tensor tensor, Peer root, ReduceOp op = ReduceOp::kSum, CallOptions options = {});
  // Everybody's `tensor` becomes that of `root`.
  Work Broadcast(Tensor tensor, Peer root, CallOptions options = {});

  // outputs[i] becomes rank i's input, whose size it has; sizes may differ
  // between ranks. An output may be the input's own memory at this rank's place.
  Work AllGather(std::span<const Tensor> outputs, ConstTensor input, CallOptions options = {});
  // The same for equal sizes, one after the other in one tensor.
  Work AllGatherInto(Tensor output, ConstTensor input, CallOptions options = {});
  // As AllGather, on `root` only; `outputs` is empty elsewhere.
  Work Gather(std::span<const Tensor> outputs, ConstTensor input, Peer root = GlobalRank{0},
              CallOptions options = {});
  // `output` becomes inputs[rank] of `root`; `inputs` is empty elsewhere.
  Work Scatter(Tensor output, std::span<const ConstTensor> inputs, Peer root = GlobalRank{0},
               CallOptions options = {});

  // `output` on rank i becomes the reduction of all ranks' inputs[i]; sizes may
  // differ between places, not between ranks.
  Work ReduceScatter(Tensor output, std::span<const ConstTensor> inputs,
                     ReduceOp op = ReduceOp::kSum, CallOptions options = {});
  // The same for equal sizes, one after the other in one tensor.
  Work ReduceScatterFrom(Tensor output, ConstTensor input, ReduceOp op = ReduceOp::kSum,
                         CallOptions options = {});

  // outputs[j] becomes rank j's inputs[this rank]. No overlap of memory.
  Work AllToAll(std::span<const Tensor> outputs, std::span<const ConstTensor> inputs,
                CallOptions options = {});
  // The same for parts of one tensor: splits are numbers of its rows, one per
  // rank; empty: equal parts.
  Work AllToAllSingle(Tensor output, ConstTensor input,
                      std::span<const std::size_t> output_splits = {},
                      std::span<const std::size_t> input_splits = {}, CallOptions options = {});

  // Is complete after every rank has entered it.
  Work Barrier(CallOptions options = {});

  // A barrier over the store for finding out who is missing: for debugging and
  // phases. If ranks have not come after `timeout`, all that have come throw
  // DistTimeoutError with the same text, which names every missing rank; a rank
  // that comes later gets it too. wait_all_ranks=false names the first only. Does
  // not break the group. DistNetworkError, at once, if rankrun says that a rank has
  // died; DistStoreError if the store is lost.
  void MonitoredBarrier(Timeout timeout = {}, bool wait_all_ranks = true);

  // Messages between two members meet by (sender, tag), in the order sent; tags
  // are 0 or more. A Recv of another dtype or size than what was sent is a DistError.
  // A time-out (of ISend and IRecv: the group's) breaks the group, as the tensor
  // must not be in use any more. Send returns when `tensor` may be used again.
  void Send(ConstTensor tensor, Peer destination, int tag = 0, Timeout timeout = {});
  // Returns the sender's global rank (-1: no member).
  int Recv(Tensor tensor, Source source = {}, int tag = 0, Timeout timeout = {});
  Work ISend(ConstTensor tensor, Peer destination, int tag = 0);  // also to itself
  Work IRecv(Tensor tensor, Source source = {}, int tag = 0);
  // One Work per message, all started before any is waited for.
  std::vector<Work> Batch(std::span<const P2POp> operations);

 private:
  friend class comm::GroupTable;
  friend comm::Group& comm::GroupOf(ProcessGroup& group);
  explicit ProcessGroup(std::unique_ptr<comm::Group> group);

  std::unique_ptr<comm::Group> group_;
};

}  // namespace rankrun

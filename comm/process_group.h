#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <rankrun/export.h>
#include <rankrun/tensor.h>

namespace rankrun {

namespace comm {
class Group;
class WorldHolder;
}  // namespace comm

enum class ReduceOp { kSum, kAvg, kProduct, kMin, kMax };

// kBroken: a collective has failed, so the ranks no longer agree on what comes
// next. All later collectives fail at once. Destroy() and Init() make a new
// group; the process itself is sound.
enum class GroupState { kOk, kBroken };

// At least 1 ms. Without a value: the time-out given to Init.
using Timeout = std::optional<std::chrono::milliseconds>;

// The ranks that work together, and what they do together. Every member calls
// the same functions in the same order with the same dtype, count, operation
// and source; a member that does not makes the others (and itself) time out.
//
// All functions block until this rank's part is done. Collectives (AllReduce,
// Broadcast, Barrier) wait at most `timeout` for each message from another
// rank. They throw DistTimeoutError after that, DistNetworkError if a member
// is lost, DistBackendError for the rest; the group is then kBroken and the
// content of `tensor` undefined. They throw DistError for a bad argument,
// which leaves group and tensor as they were on this rank.
//
// Thread: any; calls on one group run one after the other.
// Lifetime: owned by the library, from Init until Destroy.
// Source: torch.distributed (pytorch.org/docs/stable/distributed.html).
class RANKRUN_API ProcessGroup {
 public:
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int global_rank() const;  // 0 <= global_rank() < world_size()
  int world_size() const;
  GroupState state() const;
  std::string broken_reason() const;  // empty while kOk

  // Replaces element i of `tensor` by the reduction of element i over all
  // ranks. In place; `tensor.count` elements on every rank, 0 is legal. The
  // result is the same on all ranks to the last bit; its rounding depends on
  // world size and count. kAvg is the sum divided by the world size. If an
  // element is NaN on any rank, the result is NaN, for kMin and kMax too.
  // Sends 2 * (world_size - 1) / world_size * bytes from each rank.
  void AllReduce(Tensor tensor, ReduceOp op = ReduceOp::kSum, Timeout timeout = {});

  // Replaces `tensor` by that of `source_global_rank`. In place;
  // `tensor.count` elements on every rank, 0 is legal. On the source the
  // tensor is read only, and may return before others have received it.
  void Broadcast(Tensor tensor, int source_global_rank, Timeout timeout = {});

  // Returns after every rank has entered it.
  void Barrier(Timeout timeout = {});

  // A barrier over the store for finding out who is missing. If a rank has not
  // come after `timeout`, all that have come throw DistTimeoutError with the
  // same text, which names every missing rank (rank 0 included); a rank that
  // comes later gets it too, at once. Failure does not break the group.
  // DistNetworkError, at once, if rankrun says that a rank has died;
  // DistStoreError if the store is lost. Costs a few round trips to the store
  // per rank: for debugging and phases, not for every step.
  void MonitoredBarrier(Timeout timeout = {});

 private:
  friend class comm::WorldHolder;
  explicit ProcessGroup(std::unique_ptr<comm::Group> group);

  std::unique_ptr<comm::Group> group_;
};

}  // namespace rankrun

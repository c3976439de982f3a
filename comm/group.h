#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <rankrun/process_group.h>
#include <rankrun/tensor.h>

#include "base/clock.h"
#include "base/death_watch.h"
#include "base/result.h"
#include "comm/backend.h"
#include "comm/operation.h"
#include "comm/store_barrier.h"
#include "store/store.h"

namespace rankrun::comm {

// `timeout`, but at most a year: the same as for ever, and arithmetic on
// deadlines cannot overflow.
std::chrono::milliseconds Bounded(std::chrono::milliseconds timeout);

// A process group behind its public face: members, backend, sequence of
// operations, deadline, state. Knows what an error means for the group and
// tells it in full; the backend knows only what went wrong on the wire.
// Errors: kInvalid for arguments (nothing was sent), kTimeout, kPeerLost,
// kSystem from collectives (the group is broken), kProtocol from the store.
// Thread: any; calls are serialised.
class Group {
 public:
  struct Identity {
    int global_rank;
    int world_size;
    std::chrono::milliseconds timeout;
    std::string key_prefix;
    DeathWatch deaths = {};
  };

  // `barrier` uses `store`, and so may `backend`.
  Group(Identity identity, std::unique_ptr<store::Store> store,
        std::unique_ptr<StoreBarrier> barrier, std::unique_ptr<Backend> backend);

  int global_rank() const { return identity_.global_rank; }
  int world_size() const { return identity_.world_size; }
  GroupState state() const;
  std::string broken_reason() const;

  Result<void> AllReduce(const Tensor& tensor, ReduceOp op, Timeout timeout);
  Result<void> Broadcast(const Tensor& tensor, int source, Timeout timeout);
  Result<void> Barrier(Timeout timeout);
  Result<void> MonitoredBarrier(Timeout timeout);

 private:
  struct Deadline {
    TimePoint since;
    std::chrono::milliseconds timeout;
  };
  using Body = std::function<Result<void>(const Call& call)>;

  Result<void> Run(Operation operation, Timeout timeout, const Body& body);
  Result<std::chrono::milliseconds> Effective(Timeout timeout) const;
  Error Break(const std::string& operation, Error cause, const Deadline& deadline);
  std::string Place() const;

  const Identity identity_;
  mutable std::mutex mutex_;  // guards all below
  // The order matters: barrier and backend end before the store they use.
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<StoreBarrier> barrier_;
  std::unique_ptr<Backend> backend_;  // null once the group is broken
  uint64_t operations_ = 0;
  uint64_t monitored_barriers_ = 0;  // apart: a failed one may be missing on some ranks
  std::string broken_reason_;        // empty: kOk
};

}  // namespace rankrun::comm

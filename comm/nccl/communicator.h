#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>

#include <rankrun/backend_options.h>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/core/device_backend.h"

namespace rankrun::comm::nccl {

// Returns whether NCCL has taken a call, which it may complete in the background.
inline bool GoesOn(ncclResult_t status) {
  return status == ncclSuccess || status == ncclInProgress;
}

// Time for NCCL to end its calls after an abort.
inline constexpr std::chrono::milliseconds kAborting{1000};

// Communicator of NCCL that never blocks: each wait ends at a deadline, at a death
// and at Abort.
// Thread: one for Launch, Split and Register; Deregister, Abort and Failure any.
class Communicator {
 public:
  struct Place {
    int rank;
    int size;
    const char* name;  // in NCCL's log; outlives the communicator
    NcclOptions options;
    DeathWatch deaths;
    const std::atomic<bool>& aborted;  // of the backend
  };

  // Connects this rank to the others, which pass the same `id`; on the current GPU.
  // Errors: as Launch.
  static Result<std::unique_ptr<Communicator>> Connect(const ncclUniqueId& id, const Place& place,
                                                       TimePoint deadline);
  // As Connect, but does not wait for the other ranks: Poll continues.
  static Result<std::unique_ptr<Communicator>> Begin(const ncclUniqueId& id, const Place& place);
  ~Communicator();

  // Returns whether NCCL has completed the last call. Errors: kCancelled, kSystem with NCCL's
  // words.
  Result<bool> Poll();
  // Makes `calls` as one group. `calls` stops at its first error and returns it. Returns
  // whether NCCL has enqueued them: Poll continues, before any other call. Errors: as Poll.
  Result<bool> Enqueue(const std::function<ncclResult_t(ncclComm_t)>& calls);
  // As Enqueue, but waits until NCCL has enqueued them.
  // Errors: kTimeout, kCancelled (a death, or Abort), kSystem with NCCL's words.
  Result<void> Launch(const std::function<ncclResult_t(ncclComm_t)>& calls, TimePoint deadline);
  // Makes an operator that multiplies by `scalar` on the host, and uses it in `launch`.
  Result<void> WithPremulSum(void* scalar, ncclDataType_t type,
                             const std::function<Result<void>(ncclRedOp_t)>& launch);
  // Makes the communicator of a part, which is at `place`; null on a rank in no part. All
  // ranks call it. Errors: as Launch; what part.find_failure returns.
  Result<std::unique_ptr<Communicator>> Split(const DevicePart& part, const Place& place,
                                              TimePoint deadline);
  // Registers memory. Returns NCCL's handle.
  Result<void*> Register(void* data, size_t bytes);
  void Deregister(void* handle);
  // Returns the error that NCCL has met since, for example in the network.
  Result<void> Failure();
  // Ends all calls under way, for good. The returned state is ready once they have ended.
  std::shared_future<void> BeginAbort();
  // Waits for that, too, for kAborting at most.
  void Abort();
  // Begins to part from the other ranks, for which the destructor waits. No call may
  // follow.
  void Leave();

 private:
  using FailureFinder = decltype(DevicePart::find_failure);

  Communicator(ncclComm_t comm, const DeathWatch& deaths, const std::atomic<bool>& aborted)
      : comm_(comm), deaths_(deaths), aborted_(aborted) {}

  ncclResult_t State() EXCLUDES(mutex_);
  Result<void> Settle(ncclResult_t status, const char* what, TimePoint deadline,
                      const FailureFinder& find_failure = {}) EXCLUDES(mutex_);

  Mutex busy_mutex_;  // held while NCCL works on a call; locked before mutex_
  Mutex mutex_;
  ncclComm_t comm_ PT_GUARDED_BY(mutex_);
  bool is_over_ GUARDED_BY(mutex_) = false;  // aborted
  std::shared_future<void> abort_ GUARDED_BY(mutex_);
  std::optional<ncclResult_t> leaving_ GUARDED_BY(mutex_);
  TimePoint leaving_until_ GUARDED_BY(mutex_);
  const DeathWatch deaths_;
  const std::atomic<bool>& aborted_;
};

}  // namespace rankrun::comm::nccl

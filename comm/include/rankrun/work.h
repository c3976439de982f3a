#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <rankrun/export.h>

namespace rankrun {

namespace comm {
class WorkHandle;
}
template <typename T>
class Future;

// End of an operation, with PyTorch's numbers.
enum class WorkResult : uint8_t {
  kSuccess = 0,
  kTimeout = 1,
  kCommError = 2,  // a lost rank or store
  kUnknown = 100,  // another error
};

// Handle of an operation; complete when a blocking call on CPU memory returns it. Copies
// refer to the same operation. Dropping all copies does not cancel it; the first
// operation of a process that is dropped unused, before its end or after a failure, is
// logged as a warning. Destroy of its group waits for a collective and ends a message with an
// error. In a fork of the process, all functions but those for copies throw DistError for an
// asynchronous one. Thread: any.
class RANKRUN_API Work {
 public:
  // Makes the handle of a complete operation.
  explicit Work(uint64_t sequence = 0);
  Work(uint64_t sequence, std::shared_ptr<comm::WorkHandle> handle);
  Work(const Work&);
  Work& operator=(const Work&);
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  // Waits until the operation is complete, at most for its time-out, which for a
  // message counts from the first Wait or WaitFor. Throws the operation's error if
  // it failed.
  // For an operation on GPU memory, lets later work in this thread's CUDA stream wait
  // for it (rankrun/gpu.h) and returns at once; it throws only an error that is
  // known already. WaitFor waits in this thread.
  void Wait() const;
  // As Wait, but returns false if the operation is not complete after `limit`;
  // the operation continues.
  bool WaitFor(std::chrono::milliseconds limit) const;
  // As WaitFor, but throws DistTimeoutError after `limit`; the operation continues.
  void Wait(std::chrono::milliseconds limit) const;

  // Neither of these waits.
  bool IsCompleted() const;              // successful or failed
  bool IsSuccess() const;                // completed without an error
  std::exception_ptr exception() const;  // null unless the operation failed
  std::optional<WorkResult> result() const;

  // Calls `done` once when the operation is complete: from the thread that
  // completes it, or here if it already is. `done` must not throw, and must not
  // wait for other work of the same group.
  void Then(std::function<void()> done) const;

  // Global rank of the sender of a completed receive; -1 for all other work.
  int source_global_rank() const;
  // Number of a collective within its group, from 1. 0 for point-to-point
  // messages and if this rank is not a member of the group.
  uint64_t sequence() const { return sequence_; }

 private:
  friend RANKRUN_API Work Coalesce(std::span<const Work> works);
  friend RANKRUN_API Future<void> FutureOf(const Work& work);

  uint64_t sequence_;
  std::shared_ptr<comm::WorkHandle> handle_;  // null: complete
};

// Returns one handle for several operations, of one group or of several. It becomes
// complete a moment after the last of them. Its error is the first one in the order
// of `works`. Its Wait begins the time-outs of all messages. sequence() is 0.
RANKRUN_API Work Coalesce(std::span<const Work> works);

}  // namespace rankrun

#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>

#include <rankrun/export.h>

namespace rankrun {

namespace comm {
class WorkState;
}

// An operation under way. What a blocking call returns is complete. Copies are
// the same operation; to drop all of them does not cancel it. Destroy of its
// group waits for a collective, and ends a message with an error.
// Thread: any.
class RANKRUN_API Work {
 public:
  // Complete.
  explicit Work(uint64_t sequence = 0);
  Work(uint64_t sequence, std::shared_ptr<comm::WorkState> state);
  Work(const Work&);
  Work& operator=(const Work&);
  Work(Work&&) noexcept;
  Work& operator=(Work&&) noexcept;
  ~Work();

  // Waits for its end and throws the operation's error, if it had one: the
  // operation's own time-out ends it at the latest.
  void Wait() const;
  // The same, or false if it is still under way after `limit`: then nothing is
  // lost, it goes on.
  bool WaitFor(std::chrono::milliseconds limit) const;

  bool IsCompleted() const;              // well or badly; never waits
  bool IsSuccess() const;                // completed without an error
  std::exception_ptr exception() const;  // null while under way or if it went well

  // Calls `done` once after the end, from the thread that ended it, or at once
  // if it has ended. It must not wait for other work of the same group, and
  // not throw.
  void Then(std::function<void()> done) const;

  // Of a Recv that has ended: the global rank of the sender. Else -1.
  int source_global_rank() const;
  // Its place in its group's sequence, from 1; 0 of point-to-point messages and of
  // a group that this rank is no member of.
  uint64_t sequence() const { return sequence_; }

 private:
  uint64_t sequence_;
  std::shared_ptr<comm::WorkState> state_;  // null: complete
};

}  // namespace rankrun

#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "comm/async/work_state.h"
#include "comm/core/operation.h"

namespace rankrun::comm {

// The program's hold on an asynchronous operation, which all copies of its Work share.
// Thread: any.
class WorkHandle {
 public:
  // `operation`: for a warning; no value: several operations.
  WorkHandle(std::shared_ptr<WorkState> state, const std::optional<Operation>& operation)
      : state_(std::move(state)), operation_(operation) {}
  // Warns, once in a process, if the program has never asked for the end of an operation that goes
  // on or has failed.
  ~WorkHandle();

  // The program asks for the end, or will.
  void NoteUse() { is_used_.store(true, std::memory_order_relaxed); }
  const std::shared_ptr<WorkState>& state() const { return state_; }

 private:
  const std::shared_ptr<WorkState> state_;
  const std::optional<Operation> operation_;
  std::atomic<bool> is_used_ = false;
};

}  // namespace rankrun::comm

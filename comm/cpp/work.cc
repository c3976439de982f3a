#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <rankrun/future.h>
#include <rankrun/work.h>

#include "base/format.h"
#include "base/interruptible_call.h"
#include "comm/async/work_handle.h"
#include "comm/core/current_stream.h"
#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/group/group.h"

namespace rankrun {
namespace {

// Returns the state of an operation for `call`. Throws DistError in a fork of its process.
comm::WorkState& StateFor(const std::shared_ptr<comm::WorkHandle>& handle,
                          const char* call = __builtin_FUNCTION()) {
  comm::WorkState& state = *handle->state();
  handle->NoteUse();
  if (state.home().is_here()) return state;
  comm::Throw(state.home()
                  .ErrorOfFork("the process of this operation", "it")
                  .In(std::string("Work::") + call));
}

std::string NameOf(uint64_t sequence) {
  return sequence == 0 ? "the operation" : "operation #" + std::to_string(sequence);
}

[[noreturn]] void ThrowInterrupted(uint64_t sequence) {
  comm::Throw({ErrorCode::kCancelled, std::string("the wait for ") + NameOf(sequence) + " was " +
                                          InterruptibleCall::kText + "; it goes on"});
}

}  // namespace

Work::Work(uint64_t sequence) : sequence_(sequence) {}
Work::Work(uint64_t sequence, std::shared_ptr<comm::WorkHandle> handle)
    : sequence_(sequence), handle_(std::move(handle)) {}
Work::Work(const Work&) = default;
Work& Work::operator=(const Work&) = default;
Work::Work(Work&&) noexcept = default;
Work& Work::operator=(Work&&) noexcept = default;
Work::~Work() = default;

void Work::Wait() const {
  if (handle_ == nullptr) return;
  comm::WorkState& state = StateFor(handle_);
  auto ok = state.AwaitIn(comm::CurrentStream());
  if (!ok && !state.done() && InterruptibleCall::IsInterrupted()) ThrowInterrupted(sequence_);
  comm::Unwrap(ok);
}

bool Work::WaitFor(std::chrono::milliseconds limit) const {
  if (handle_ == nullptr) return true;
  if (!StateFor(handle_).AwaitFor(comm::Bounded(limit))) {
    if (InterruptibleCall::IsInterrupted()) ThrowInterrupted(sequence_);
    return false;
  }
  comm::Unwrap(handle_->state()->result());
  return true;
}

void Work::Wait(std::chrono::milliseconds limit) const {
  if (WaitFor(limit)) return;
  comm::Throw({ErrorCode::kTimeout, NameOf(sequence_) + " is not complete after " +
                                        FormatSeconds(limit) + "; it goes on"});
}

bool Work::IsCompleted() const { return handle_ == nullptr || StateFor(handle_).done(); }

bool Work::IsSuccess() const {
  return handle_ == nullptr || (StateFor(handle_).done() && handle_->state()->result());
}

std::exception_ptr Work::exception() const {
  if (!IsCompleted() || IsSuccess()) return nullptr;
  try {
    comm::Throw(handle_->state()->result().error());
  } catch (...) {
    return std::current_exception();
  }
}

std::optional<WorkResult> Work::result() const {
  if (!IsCompleted()) return std::nullopt;
  if (IsSuccess()) return WorkResult::kSuccess;
  switch (handle_->state()->result().error().code) {
    case ErrorCode::kTimeout:
      return WorkResult::kTimeout;
    case ErrorCode::kPeerLost:
    case ErrorCode::kCancelled:
    case ErrorCode::kProtocol:
      return WorkResult::kCommError;
    case ErrorCode::kInvalid:
    case ErrorCode::kMismatch:
    case ErrorCode::kExhausted:
    case ErrorCode::kNotFound:
    case ErrorCode::kSystem:
      return WorkResult::kUnknown;
  }
  __builtin_unreachable();
}

void Work::Then(std::function<void()> done) const {
  if (handle_ == nullptr) return done();
  StateFor(handle_).Then(std::move(done));
}

Work Coalesce(std::span<const Work> works) {
  std::vector<std::shared_ptr<comm::WorkState>> parts;
  for (const Work& work : works) {
    if (work.handle_ == nullptr) continue;
    StateFor(work.handle_);  // throws in a fork
    parts.push_back(work.handle_->state());
  }
  if (parts.empty()) return Work();
  return Work(0, std::make_shared<comm::WorkHandle>(comm::WorkState::OfAll(parts), std::nullopt));
}

Future<void> FutureOf(const Work& work) {
  Promise<void> promise;
  if (work.handle_ != nullptr && !StateFor(work.handle_).AwaitFor(std::chrono::milliseconds(0))) {
    // A thread may wait for the future, which does not show it.
    work.handle_->state()->CountWaiter();
  }
  work.Then([work, promise] {
    if (auto why = work.exception()) {
      promise.SetException(why);
    } else {
      promise.SetValue();
    }
  });
  return promise.future();
}

int Work::source_global_rank() const {
  return handle_ == nullptr ? -1 : StateFor(handle_).source();
}

}  // namespace rankrun

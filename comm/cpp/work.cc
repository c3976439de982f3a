#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <rankrun/future.h>
#include <rankrun/work.h>

#include "base/format.h"
#include "comm/async/work_state.h"
#include "comm/core/current_stream.h"
#include "comm/core/throw.h"
#include "comm/core/time_left.h"
#include "comm/group/group.h"

namespace rankrun {
namespace {

// Returns the state of an operation for `call`. Throws DistError in a fork of its process.
comm::WorkState& StateFor(const std::shared_ptr<comm::WorkState>& state,
                          const char* call = __builtin_FUNCTION()) {
  if (state->home().is_here()) return *state;
  comm::Throw(state->home()
                  .ErrorOfFork("the process of this operation", "it")
                  .In(std::string("Work::") + call));
}

}  // namespace

Work::Work(uint64_t sequence) : sequence_(sequence) {}
Work::Work(uint64_t sequence, std::shared_ptr<comm::WorkState> state)
    : sequence_(sequence), state_(std::move(state)) {}
Work::Work(const Work&) = default;
Work& Work::operator=(const Work&) = default;
Work::Work(Work&&) noexcept = default;
Work& Work::operator=(Work&&) noexcept = default;
Work::~Work() = default;

void Work::Wait() const {
  if (state_ == nullptr) return;
  comm::Unwrap(StateFor(state_).AwaitIn(comm::CurrentStream()));
}

bool Work::WaitFor(std::chrono::milliseconds limit) const {
  if (state_ == nullptr) return true;
  if (!StateFor(state_).AwaitFor(comm::Bounded(limit))) return false;
  comm::Unwrap(state_->result());
  return true;
}

void Work::Wait(std::chrono::milliseconds limit) const {
  if (WaitFor(limit)) return;
  std::string name = sequence_ == 0 ? "the operation" : "operation #" + std::to_string(sequence_);
  comm::Throw({ErrorCode::kTimeout,
               name + " is not complete after " + FormatSeconds(limit) + "; it goes on"});
}

bool Work::IsCompleted() const { return state_ == nullptr || StateFor(state_).done(); }

bool Work::IsSuccess() const {
  return state_ == nullptr || (StateFor(state_).done() && state_->result());
}

std::exception_ptr Work::exception() const {
  if (!IsCompleted() || IsSuccess()) return nullptr;
  try {
    comm::Throw(state_->result().error());
  } catch (...) {
    return std::current_exception();
  }
}

std::optional<WorkResult> Work::result() const {
  if (!IsCompleted()) return std::nullopt;
  if (IsSuccess()) return WorkResult::kSuccess;
  switch (state_->result().error().code) {
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
  if (state_ == nullptr) return done();
  StateFor(state_).Then(std::move(done));
}

Work Coalesce(std::span<const Work> works) {
  std::vector<std::shared_ptr<comm::WorkState>> parts;
  for (const Work& work : works) {
    if (work.state_ == nullptr) continue;
    StateFor(work.state_);  // throws in a fork
    parts.push_back(work.state_);
  }
  if (parts.empty()) return Work();
  return Work(0, comm::WorkState::OfAll(parts));
}

Future<void> FutureOf(const Work& work) {
  Promise<void> promise;
  if (work.state_ != nullptr && !StateFor(work.state_).AwaitFor(std::chrono::milliseconds(0))) {
    work.state_->CountWaiter();  // a thread may wait for the future, which does not show it
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

int Work::source_global_rank() const { return state_ == nullptr ? -1 : StateFor(state_).source(); }

}  // namespace rankrun

#pragma once

#include <initializer_list>
#include <memory>
#include <new>
#include <utility>

#include "base/interruptible_call.h"
#include "comm/async/work_handle.h"
#include "comm/core/call_stack.h"
#include "comm/core/debug_level.h"
#include "comm/core/part_of.h"
#include "comm/group/arguments.h"
#include "comm/group/group.h"
#include "comm/group/group_log.h"

// Execution of a checked call, for the sources of Group only.
namespace rankrun::comm {

// Returns the first error, if any.
inline Result<void> All(std::initializer_list<Result<void>> checks) {
  for (const Result<void>& check : checks) {
    if (!check) return check;
  }
  return {};
}

template <typename T>
Result<void> Fine(const Result<T>& result) {
  if (result) return {};
  return result.error();
}

// Converts bad_alloc to an error, because the other ranks have begun the call
// and must learn of the failure.
template <typename Body>
Result<void> WithoutBadAlloc(Body body) try {
  return body();
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::kExhausted, "no memory for it"};
}

template <typename Body>
[[gnu::cold, gnu::noinline]] Result<void> Observed(const OperationEvents& events,
                                                   const Operation& operation, Body& body) {
  OperationEvent event = events.BeginUnrecorded(operation);
  Result<void> ok = body();
  event.End(static_cast<bool>(ok));
  return ok;
}

// Runs `body` as an event, if anything observes events.
template <typename Body>
Result<void> WithEvent(const OperationEvents& events, const Operation& operation, Body body) {
  if (AreOperationsObserved()) [[unlikely]]
    return Observed(events, operation, body);
  return body();
}

// Runs a blocking call in the caller's thread if the queue is empty and no hook can interrupt it
// that the backend does not ask; otherwise queues it.
template <typename Body>
Result<Work> Group::Run(Operation operation, const CallOptions& options, Body body) {
  std::chrono::milliseconds timeout = identity_.timeout;
  if (options.timeout) {
    auto limit = Effective(options.timeout);
    if (!limit) return Refuse(operation, limit.error(), options);
    timeout = *limit;
  }
  operation.part_of = PartOf::OfThisThread();
  MutexLock lock(mutex_);
  operation.number = operations_ + 1;
  if (broken_.is_set()) return Broken(Describe(operation) + Place());
  operations_ += 1;
  const bool can_run = !InterruptibleCall::IsUnderWay() || backend_->IsInterruptible();
  if (!options.async && !queue_->busy() && can_run) {
    auto ok = WithEvent(events_, operation, [&] { return Execute(operation, timeout, body); });
    if (!ok) return WithStack(std::move(ok).error(), CallStack::IfShown());
    return Work(operation.number);
  }
  auto state = std::make_shared<WorkState>();
  state->SetWaiters(waiters_);
  state->SetQueue(queue_, backend_->IsInterruptible());
  auto pushed = queue_->Push([this, operation, timeout, state, stack = CallStack::IfShown(),
                              body = std::move(body)]() mutable {
    auto ok = WithEvent(events_, operation, [&] {
      return Execute(operation, timeout, body, Activity::Caller::kGoesOn);
    });
    state->Finish(WithStack(std::move(ok), stack));
  });
  if (!pushed) {  // the call has its number, so the other ranks wait for it
    return Failed(operation, std::move(pushed).error(), timeout);
  }
  lock.Unlock();
  if (options.async) return Work(operation.number, std::make_shared<WorkHandle>(state, operation));
  if (!state->AwaitUnlessInterrupted()) {
    Error error = Failed(operation, InterruptibleCall::Failure(), timeout);
    state->Await();  // then nothing uses the tensors any more
    return error;
  }
  if (!state->result()) return Error(state->result().error());
  return Work(operation.number);
}

template <bool kMayLog, bool kIsRecorded, typename Body>
Result<void> Group::Execute(const Operation& operation, std::chrono::milliseconds timeout,
                            Body& body, Activity::Caller caller) {
  constexpr auto kRecording = kIsRecorded ? Activity::Recording::kYes : Activity::Recording::kNo;
  if constexpr (kMayLog) {
    // Out of line, so that the usual way has no more than a branch.
    const auto logged = [&]() __attribute__((noinline, cold)) {
      return RunLogged(operation, identity_, [&] {
        return Execute<false, kIsRecorded>(operation, timeout, body, caller);
      });
    };
    if (LogsCalls()) [[unlikely]]
      return logged();
  }
  if (broken_.is_set()) return Broken(Describe(operation) + Place());
  Call call{.operation = operation, .timeout = timeout};
  const uint64_t came = Ticks();
  activity_.Enter(RecordOf(operation, call.fingerprint), kRecording, caller, came);
  auto ok = WithoutBadAlloc([&] { return body(*backend_, call); });
  if (ok) ok = backend_->Conclude(call);
  activity_.Complete(static_cast<bool>(ok));
  if (ok) return {};
  return Failed(operation, std::move(ok).error(), {timeout, came});
}

}  // namespace rankrun::comm

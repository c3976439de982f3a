#pragma once

#include <initializer_list>
#include <new>
#include <utility>

#include "comm/arguments.h"
#include "comm/group.h"

// For Group's own sources: how a checked call is run.
namespace rankrun::comm {

// The first error, if there is one.
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

// The others have begun the call, and are told of it as of any failure.
template <typename Body>
Result<void> WithoutBadAlloc(Body body) try {
  return body();
} catch (const std::bad_alloc&) {
  return Error{ErrorCode::kExhausted, "no memory for it"};
}

// In the caller's thread if it is to wait and nothing is before it.
template <typename Body>
Result<Work> Group::Run(Operation operation, const CallOptions& options, Body body) {
  const Result<std::chrono::milliseconds> limit = Effective(options.timeout);
  if (!limit) return Refuse(operation, limit.error(), options);
  const std::chrono::milliseconds timeout = *limit;
  std::unique_lock lock(mutex_);
  operation.number = operations_ + 1;
  if (broken_.load()) return Broken(Describe(operation) + Place());
  operations_ += 1;
  if (!options.async && !queue_.busy()) {
    if (auto ok = Execute(operation, timeout, body); !ok) return std::move(ok).error();
    return Work(operation.number);
  }
  auto state = std::make_shared<WorkState>();
  auto pushed = queue_.Push([this, operation, timeout, state, body = std::move(body)]() mutable {
    state->Finish(Execute(operation, timeout, body));
  });
  if (!pushed) {  // it has its number: the others wait for it
    return Failed(operation, std::move(pushed).error(), timeout);
  }
  lock.unlock();
  if (options.async) return Work(operation.number, state);
  state->Await();
  if (!state->result()) return Error(state->result().error());
  return Work(operation.number);
}

template <typename Body>
Result<void> Group::Execute(const Operation& operation, std::chrono::milliseconds timeout,
                            Body& body) {
  if (broken_.load()) return Broken(Describe(operation) + Place());
  const Call call{.operation = operation, .timeout = timeout};
  activity_.Enter({.kind = static_cast<uint8_t>(operation.kind),
                   .dtype = static_cast<uint8_t>(operation.dtype),
                   .op = operation.op,
                   .root = operation.global_root,
                   .number = operation.number,
                   .count = operation.count,
                   .fingerprint = call.fingerprint});
  auto ok = WithoutBadAlloc([&] { return body(*backend_, call); });
  activity_.Complete();
  if (ok) return {};
  return Failed(operation, std::move(ok).error(), timeout);
}

}  // namespace rankrun::comm

#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "comm/group/failure_time.h"
#include "comm/group/group_identity.h"
#include "store/store.h"

namespace rankrun::comm {

// Time-out for connecting to the store of a broken group, and for each reply of it, because the
// store itself may be stuck. A dead store fails at once.
constexpr std::chrono::milliseconds kStorePatience{1000};

// Failure of `operation` on one rank.
struct FailedCall {
  const std::string& operation;
  std::chrono::milliseconds timeout;
  std::optional<WallTime> came;  // when this rank began the call; no value: not known
};

// Returns whether the first failure adds anything to this rank's own error:
// neither text contains the other. Time-outs are compared with their operation,
// because all time-outs have the same text.
bool AddsInformation(const std::string& first, const std::string& own_operation, const Error& own);

// Publishes `cause` for the other ranks, and adds to it what they have published. Waits for them
// after a time-out only, and not once `is_ending`.
void Explain(const GroupIdentity& identity, store::Store& store, const FailedCall& call,
             const std::atomic<bool>& is_ending, Error& cause);

}  // namespace rankrun::comm

#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/core/algorithm.h"
#include "comm/core/collective.h"
#include "comm/core/operation.h"
#include "store/store.h"

namespace rankrun::comm {

// The program's call of a collective, which a backend may carry out in parts.
struct Call {
  const Operation& operation;
  std::chrono::milliseconds timeout;  // at least 1 ms
  uint64_t fingerprint = Fingerprint(operation);
  bool awaits_hosts = false;  // waits for a rank of its host that itself waits for other hosts
};

// Properties by which a message matches a receive.
struct Envelope {
  uint64_t tag;  // the program's tag; plus kObjectTags for objects
  DType dtype;
};

// Message that has arrived and matches no receive.
struct UnexpectedEnvelope {
  int source;
  uint64_t tag;
};

// Send or receive of one message.
// Thread: one at a time.
class Transfer {
 public:
  // Must follow the end of the transfer, or Abort.
  virtual ~Transfer() = default;

  // Moves data without waiting. Returns whether the transfer is over.
  virtual bool Test() = 0;
  // Waits until it is over, at most `timeout`. Errors: kTimeout, but the transfer continues.
  // Errors that end it: kInvalid on both sides if sizes or dtypes differ; otherwise as Backend.
  virtual Result<void> Wait(std::chrono::milliseconds timeout) = 0;
  virtual int source() const = 0;  // receives: group rank of the sender, when over
  // For a pending receive, returns a message that differs in its tag only.
  virtual std::optional<UnexpectedEnvelope> FirstUnexpected() { return std::nullopt; }
};

// Transport of data between the ranks of one process group; ranks here are group ranks. The
// caller has checked the arguments as far as one rank can: the numbers of blocks are right, and
// roots are in range.
//
// Errors of all functions: kTimeout, kPeerLost (with the rank), kCancelled (with the death
// message), kMismatch (with the call of each rank), kInvalid (another rank has refused its call),
// kSystem, kExhausted (no memory for it). After an error other than a refusal only Abort may be
// called. Thread: one for collectives and, at the same time, one other for messages.
class Backend {
 public:
  virtual ~Backend() = default;

  // Carries out a collective.
  virtual Result<void> Run(const Collective& collective, const Call& call) = 0;

  // Returns whether Run and Conclude look at deaths, and so at interrupts of their thread's call,
  // while they wait.
  virtual bool IsInterruptible() const { return false; }

  // Ends a collective whose data is complete here, before its result is given out. Waits only for
  // a rank that is about to give up the call. Errors: that of a rank that has failed in this call
  // or before, as far as it is known here. One that fails later has the result of this call.
  virtual Result<void> Conclude(const Call& call) = 0;

  // Announces that bad arguments keep this rank out of `call`. The calls of the others fail with
  // "rank 3 refused AllGather #17 (...): <reason>". Waits only if others are several refused calls
  // behind. Returns whether the group stays usable: their error is kInvalid then, else kSystem.
  virtual bool Refuse(const Call& call, const std::string& reason) = 0;

  // Returns the error by which a wait since `since` outside of this backend must end, because
  // another rank has failed or has died. May wait briefly for the reason. Thread: any.
  virtual std::optional<Error> FindFailure(TimePoint since) = 0;

  // Ends all waits and transfers of this group, on all ranks and for good. Their error contains
  // `reason`, which names this rank, as far as it reaches them. No block is touched afterwards.
  // Thread: any.
  virtual void Abort(const std::string& reason) = 0;

  // Start a transfer; the block is in use until it is over. `destination` is not this rank.
  // Receives match in the order of their start.
  virtual Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                                      const Envelope& envelope) = 0;
  virtual Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                                      const Envelope& envelope) = 0;
};

struct BackendConfig {
  std::vector<int> global_ranks;        // of the members, by group rank; for messages
  std::vector<std::string> hosts = {};  // by group rank; equal: can share memory; empty: all can
  int group_rank;
  store::Store& store;                // outlives the backend
  std::string key_prefix;             // of all keys that the backend sets
  std::string network_interface;      // to listen on; empty: the interface of `host`
  std::string host;                   // address at which other ranks reach this one
  std::chrono::milliseconds timeout;  // for connecting to the other ranks
  DeathWatch deaths = {};
  bool checks_all_calls = false;   // debug level DETAIL
  AlgorithmTable algorithms = {};  // of backends that use schedules
  LogLevel default_log_level = LogLevel::kWarn;
  // Set by another thread to end tcp::ConnectAll. Null: never.
  const std::atomic<bool>* is_cancelled = nullptr;

  int world_size() const { return static_cast<int>(global_ranks.size()); }
};

}  // namespace rankrun::comm

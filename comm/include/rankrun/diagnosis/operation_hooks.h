#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <rankrun/dtype.h>
#include <rankrun/export.h>

namespace rankrun {

namespace comm {
class HookEntry;
}

// A collective, message, barrier, wait for a store or call of RPC on this rank, for hooks.
struct OperationInfo {
  using Time = std::chrono::steady_clock::time_point;

  uint64_t id;        // the same at start and end, unique in the process
  std::string name;   // "AllReduce", "Send", "StoreGet", "RpcCall"; "RpcMethod": runs for a call
  std::string group;  // empty: a wait for a store, or RPC
  uint64_t sequence;  // as Work::sequence(); MonitoredBarrier counts its own calls; 0: none
  DType dtype;        // of tensors
  uint64_t count;     // elements of this rank's part
  uint64_t bytes;
  int peer;            // global rank of the root or peer, or id of the worker; -1: none
  uint64_t tag;        // of messages
  std::string key;     // of a store; method of RPC
  Time started;        // of its execution, if it was queued
  Time ended;          // for on_end only
  bool has_succeeded;  // for on_end only
};

// Functions that are called when an operation starts and ends; either may be empty. The
// end of a posted message may follow the return of its Wait.
// The thread of the operation calls them, several threads at a time if operations
// overlap. They must not start operations of a group or calls of RPC, wait for a thread that does,
// destroy their own OperationHooks (this ends the process), or throw: an exception is
// logged as a warning. Operations that they start on a store call no hook.
struct OperationCallbacks {
  std::function<void(const OperationInfo&)> on_start;
  std::function<void(const OperationInfo&)> on_end;
};

// Calls the functions for all operations of the process that start while it exists.
// Without such an object an operation costs two nanoseconds more at most.
//   rankrun::OperationHooks hooks({.on_end = [](const rankrun::OperationInfo& operation) {
//     Record(operation.name, operation.ended - operation.started);
//   }});
// Thread: any.
class RANKRUN_API OperationHooks {
 public:
  explicit OperationHooks(OperationCallbacks callbacks);
  OperationHooks(const OperationHooks&) = delete;
  OperationHooks& operator=(const OperationHooks&) = delete;
  // Waits for calls of the functions; none follows, not even for the end of an
  // operation that has started. Destroys the functions. In a forked process it does
  // not wait, and leaves the functions.
  ~OperationHooks();

 private:
  const std::shared_ptr<comm::HookEntry> entry_;  // owners: this, and operations under way
};

}  // namespace rankrun

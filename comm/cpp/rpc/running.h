#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <rankrun/rpc.h>
#include <rankrun/rpc/backend.h>

#include "base/mutex.h"
#include "base/status/activity.h"
#include "base/status/status_page.h"
#include "comm/core/home_process.h"
#include "comm/rpc/owned_values.h"

namespace rankrun::rpc {

// RPC of this process, from Init to Shutdown.
struct Running {
  Running(std::unique_ptr<RpcAgent> made, std::chrono::milliseconds limit);

  std::chrono::milliseconds LimitOf(Timeout timeout) const;
  comm::rpc::HoldId NewHold(int holder) {
    return {.holder = holder, .issuer = self, .number = last_hold.fetch_add(1) + 1};
  }

  const LibraryUse use{StatusPage::OfThisProcess()};
  const uint64_t generation;  // another one for each Init of the process
  comm::rpc::OwnedValues values;
  const std::unique_ptr<RpcAgent> agent;
  const int self;
  std::atomic<std::chrono::milliseconds> timeout;  // of calls without one; 0: none
  // Begin where no other worker's of this id do.
  std::atomic<uint64_t> last_value;
  std::atomic<uint64_t> last_hold;
};

struct RunningState {
  Mutex mutex;
  CondVar changed;
  std::unique_ptr<Running> running GUARDED_BY(mutex);
  int users GUARDED_BY(mutex) = 0;             // threads that use `running`
  bool is_starting GUARDED_BY(mutex) = false;  // a thread is in Init
  std::thread::id starter GUARDED_BY(mutex);   // that thread, until its Init is sure to fail
  bool is_ending GUARDED_BY(mutex) = false;    // a thread is in Shutdown

  const comm::HomeProcess home;

  static RunningState& OfThisProcess();
  // Ends the waits of methods for the end of Init if this thread is in it.
  void GiveUpStart() EXCLUDES(mutex);
};

// Keeps RPC of this process alive.
// Thread: one.
class RunningUse {
 public:
  // Throws DistError if RPC is not running.
  RunningUse();
  // Returns nothing if RPC of this generation is not running.
  static std::unique_ptr<RunningUse> Of(uint64_t generation);
  RunningUse(const RunningUse&) = delete;
  RunningUse& operator=(const RunningUse&) = delete;
  ~RunningUse();

  Running* operator->() const { return running_; }
  Running& operator*() const { return *running_; }

 private:
  explicit RunningUse(Running* running) : running_(running) {}

  Running* running_;
};

// Marks this thread as one that carries out a method.
class MethodScope {
 public:
  MethodScope();
  MethodScope(const MethodScope&) = delete;
  MethodScope& operator=(const MethodScope&) = delete;
  ~MethodScope();

  static bool IsIn();  // whether this thread is in one
};

[[noreturn]] void ThrowInvalid(const std::string& message);
// Throws DistError if it is below 0.
std::chrono::milliseconds CheckedTimeout(std::chrono::milliseconds timeout);

}  // namespace rankrun::rpc

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "comm/rpc/calls.h"
#include "comm/rpc/methods.h"
#include "comm/rpc/outcome.h"
#include "comm/rpc/roster.h"
#include "comm/rpc/threads.h"
#include "comm/stream/connection.h"

namespace rankrun::comm::rpc {

class Peer;

struct AgentOptions {
  Roster roster;
  int self = 0;     // id of this worker
  int methods = 16;  // that run at once
  DeathWatch deaths = {};
};

// Calls between this worker and the others, over one connection with each.
// Thread: any. Lifetime: `methods` outlives it.
class Agent {
 public:
  // `connections` are by id; that of this worker is null. Errors: kExhausted, kSystem.
  static Result<std::unique_ptr<Agent>> Make(
      AgentOptions options, std::vector<std::unique_ptr<stream::Connection>> connections,
      const Methods& methods);
  // Ends all calls, and waits for methods that run.
  ~Agent();

  const Roster& roster() const { return options_.roster; }
  int self() const { return options_.self; }

  // Calls `method` of worker `callee`, which exists. `end` runs once, as a task. A limit of 0
  // means none.
  void Call(int callee, std::string_view method, Message arguments,
            std::chrono::milliseconds limit, Calls::End end);
  // The same; waits for the end.
  Outcome CallAndWait(int callee, std::string_view method, Message arguments,
                      std::chrono::milliseconds limit);

  // Calls of this worker whose end has not returned, and methods that run here.
  size_t unfinished() const { return open_calls() + running_.load(); }
  size_t open_calls() const { return calls_.open(); }
  size_t running_methods() const { return methods_running_.load(); }
  uint64_t begun() const { return calls_.begun(); }  // calls of this worker so far
  const Threads& threads() const { return *threads_; }

  // Lets `lost` be called for each worker that ends or is lost from now on.
  void SetLossHandler(std::function<void(int worker)> lost) EXCLUDES(mutex_);

  // Announces the end to the other workers, and ends the calls of this one. Later calls end
  // at once.
  void Close();

 private:
  friend class Peer;

  Agent(AgentOptions options, const Methods& methods, std::unique_ptr<Threads> threads);

  // `end` runs in any thread, and must not wait.
  void Begin(int callee, std::string_view method, Message arguments,
             std::chrono::milliseconds limit, Calls::End end) EXCLUDES(mutex_);
  Outcome RunMethod(int caller, Message request);

  // Called by peers:
  void Serve(Peer& caller, uint64_t id, Message request);
  void OnReply(const FrameHeader& header, std::string_view head, std::vector<Blob> blobs);
  void OnLost(std::shared_ptr<Peer> peer) EXCLUDES(mutex_);

  void WakeForDeadline(TimePoint deadline) EXCLUDES(mutex_);
  void Housekeep() EXCLUDES(mutex_);
  void EndLateCalls() EXCLUDES(mutex_);
  void EndCallsTo(const std::vector<std::shared_ptr<Peer>>& lost) EXCLUDES(mutex_);

  const AgentOptions options_;
  const Methods& methods_;
  Calls calls_;
  std::atomic<size_t> running_ = 0;  // methods, replies and ends of calls under way
  std::atomic<size_t> methods_running_ = 0;
  std::atomic<bool> is_closed_ = false;
  std::vector<std::shared_ptr<Peer>> peers_;  // by id; null: this worker

  // For the housekeeper, which ends calls that are late or whose worker is lost:
  Mutex mutex_;
  CondVar changed_;
  TimePoint next_deadline_ GUARDED_BY(mutex_) = TimePoint::max();
  std::atomic<TimePoint> watched_deadline_ = TimePoint::max();  // as next_deadline_
  std::vector<std::shared_ptr<Peer>> lost_ GUARDED_BY(mutex_);
  std::function<void(int worker)> loss_handler_ GUARDED_BY(mutex_);
  bool is_ending_ GUARDED_BY(mutex_) = false;

  std::thread housekeeper_;
  // Last, so that its tasks use no member that is destroyed.
  std::unique_ptr<Threads> threads_;
};

}  // namespace rankrun::comm::rpc

#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
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
  Worker self;
  int methods = 16;  // that run at once
  DeathWatch deaths = {};
};

// Another worker, which is connected.
struct NewPeer {
  Worker worker;
  std::unique_ptr<stream::Connection> connection;
};

// Calls between this worker and the others, over one connection with each.
// Thread: any. Lifetime: `methods` outlives it.
class Agent {
 public:
  // Errors: kInvalid for a wrong name; kExhausted, kSystem.
  static Result<std::unique_ptr<Agent>> Make(AgentOptions options, const Methods& methods);
  // Ends all calls, and waits for methods that run.
  ~Agent();

  const Roster& roster() const { return roster_; }
  const Worker& self() const { return options_.self; }

  // Adds workers, which may call this one from now on. Their methods may call each other at
  // once. Errors: kInvalid, as Roster's; kExhausted, kSystem. After an error some are added.
  Result<void> AddPeers(std::vector<NewPeer> peers) EXCLUDES(peers_mutex_);
  // Ends the connection with a worker that has left, and forgets the worker.
  void RemovePeer(int id) EXCLUDES(peers_mutex_);
  // Whether there is this worker and the connection with it is lost.
  bool is_lost(int id) const;

  // Calls `method` of worker `callee`. `end` runs once, as a task. A limit of 0 means none.
  void Call(int callee, std::string_view method, Message arguments, std::chrono::milliseconds limit,
            Calls::End end);
  // The same; waits for the end.
  Outcome CallAndWait(int callee, std::string_view method, Message arguments,
                      std::chrono::milliseconds limit);

  // Waits until another worker answers, which no method delays.
  Outcome Ping(int callee, std::chrono::milliseconds limit);

  // Number of calls under way, until their ends have returned, and of methods that run here.
  size_t unfinished() const { return open_calls() + running_.load(); }
  size_t open_calls() const { return calls_.open(); }
  bool has_queued() const EXCLUDES(peers_mutex_);  // messages that are not sent yet
  size_t running_methods() const { return methods_running_.load(); }
  uint64_t begun() const { return calls_.begun(); }  // calls of this worker so far
  const Threads& threads() const { return *threads_; }

  // Called for each worker that ends or is lost. `has_ended`: it has announced its end.
  using LossHandler = std::function<void(int worker, bool has_ended)>;
  void SetLossHandler(LossHandler lost) EXCLUDES(mutex_);

  // Announces the end to the other workers, and ends the calls of this one, with this text.
  // Later calls end at once.
  void Close(const std::string& why = "RPC of this worker has ended") EXCLUDES(mutex_);
  bool is_closed() const { return is_closed_.load(); }

 private:
  friend class Peer;

  Agent(AgentOptions options, const Methods& methods, std::unique_ptr<Threads> threads);

  // `end` runs in any thread, and must not wait.
  void Begin(int callee, FrameKind kind, Message message, std::chrono::milliseconds limit,
             Calls::End end) EXCLUDES(mutex_);
  Outcome SendAndWait(int callee, FrameKind kind, Message message, std::chrono::milliseconds limit);
  Outcome RunMethod(const Worker& caller, Message message, TimePoint arrived);
  std::shared_ptr<Peer> PeerOf(int id) const EXCLUDES(peers_mutex_);
  std::vector<std::shared_ptr<Peer>> AllPeers() const EXCLUDES(peers_mutex_);

  // Called by peers:
  void Serve(Peer& caller, uint64_t id, Message request, TimePoint arrived);
  void OnReply(const FrameHeader& header, std::string_view head, std::vector<Blob> blobs);
  void OnLost(std::shared_ptr<Peer> peer) EXCLUDES(mutex_);

  Outcome Ended() EXCLUDES(mutex_);
  void WakeForDeadline(TimePoint deadline) EXCLUDES(mutex_);
  void Housekeep() EXCLUDES(mutex_);
  void EndLateCalls() EXCLUDES(mutex_);
  void EndCallsToLost(const std::vector<std::shared_ptr<Peer>>& lost) EXCLUDES(mutex_);
  void EndCallsTo(Peer& lost) EXCLUDES(mutex_);
  void FinishCallsTo(Peer& lost) EXCLUDES(mutex_);
  static void SayGoodbye(const std::vector<std::shared_ptr<Peer>>& peers);

  const AgentOptions options_;
  const Methods& methods_;
  Calls calls_;
  std::atomic<size_t> running_ = 0;  // methods, replies and ends of calls under way
  std::atomic<size_t> methods_running_ = 0;
  std::atomic<bool> is_closed_ = false;
  Roster roster_;
  mutable Mutex peers_mutex_;
  std::map<int, std::shared_ptr<Peer>> peers_ GUARDED_BY(peers_mutex_);  // by id, without this one

  // For the housekeeper, which ends calls that are late or whose worker is lost:
  Mutex mutex_;
  CondVar changed_;
  TimePoint next_deadline_ GUARDED_BY(mutex_) = TimePoint::max();
  std::atomic<TimePoint> watched_deadline_ = TimePoint::max();  // as next_deadline_
  std::vector<std::shared_ptr<Peer>> lost_ GUARDED_BY(mutex_);
  LossHandler loss_handler_ GUARDED_BY(mutex_);
  std::string why_closed_ GUARDED_BY(mutex_);
  bool is_ending_ GUARDED_BY(mutex_) = false;

  std::thread housekeeper_;
  // Last, so that its tasks use no member that is destroyed.
  std::unique_ptr<Threads> threads_;
};

}  // namespace rankrun::comm::rpc

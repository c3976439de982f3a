#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/coordination/relay.h"
#include "agent/health/awaited_file.h"
#include "agent/health/store_waits.h"
#include "agent/inspect/inspector.h"
#include "agent/inspect/node_status.h"
#include "agent/output/ended_output.h"
#include "agent/supervisor/rank_stacks.h"

namespace rankrun::agent {

class Attempt;
class Supervisor;
class Worker;

inline constexpr const char* kAskedByRankctl = "asked by rankctl";

// Answers `rankctl` for a supervisor: what its workers do, their output, the events, and the
// orders to stop, restart or drain. A friend of Supervisor, which it only reads and gives orders.
// Thread: loop.
class Inspection {
 public:
  explicit Inspection(Supervisor& supervisor);  // outlives this object
  Inspection(const Inspection&) = delete;
  Inspection& operator=(const Inspection&) = delete;
  ~Inspection();

  void Begin() { inspector_.OpenSoon(); }
  // Takes the waits at the store, of which the time is recorded.
  std::vector<WaitingClient> NoteStoreWaits(const std::vector<StoreWaitTimes::Entry>& waits);
  // Keeps the last output of the attempt, which is about to end.
  void KeepOutput();
  // Ends the programs that take stacks, because no worker is left.
  void CancelStacks() { stacks_.Cancel(); }
  // Takes a message of the coordinator about an inspection.
  void OnRelay(const Relay& relay);

 private:
  using Reply = Inspector::Reply;

  Inspector::Options OptionsOf() const;
  Inspector::Callbacks Callbacks();
  void Answer(const InspectRequest& request, Reply reply);
  NodeStatus Status() const;
  WorkerStatus StatusOf(const Worker& worker) const;
  void AnswerStatus(size_t room, Reply reply);
  std::string Events(const InspectRequest& request) const;
  std::string Logs(const InspectRequest& request) const;
  std::string EndedLogs(const InspectRequest& request) const;
  void AnswerStacks(const InspectRequest& request, const Reply& reply);
  std::string Stop();
  std::string Restart();
  std::string Drain(const InspectRequest& request);

  Supervisor& supervisor_;
  StoreWaitTimes store_times_;
  EndedOutput ended_;
  RankStacksTaker stacks_;
  bool has_closed_ = false;            // the job, by `rankctl stop`
  std::shared_ptr<Inspection*> self_;  // null in the copies of the pool once this object is gone
  // The pool shares them, because its reads may outlive this object.
  std::shared_ptr<AwaitedFiles> files_ = std::make_shared<AwaitedFiles>();
  Inspector inspector_;
};

}  // namespace rankrun::agent

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/job/node_place.h"
#include "agent/nodes/membership.h"
#include "tests/cluster/stage.h"

namespace rankrun::cluster {

// The workers of one node in the attempts of one life of its agent, and what Supervisor does
// between them and the membership.
// Lifetime: a plan of an object that has ended does nothing.
class Workers {
 public:
  static constexpr int kFailureCode = 7;

  // `membership` returns that of this life.
  Workers(Stage& stage, int node, std::function<agent::Membership&()> membership);
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { *alive_ = false; }

  // Orders of the membership. None calls it back at once.
  void Start(const agent::NodePlace& place);
  void Stop(const agent::StopWorkers& order);
  void ReportSuccess();

  void Fail();      // one of them, by itself
  void LosePeer();  // of another node: one of them ends because of that
  void BeginStop(bool at_once);
  bool are_running() const { return phase_ != Phase::kNone; }

 private:
  enum class Phase { kNone, kRunning, kStopping };

  // Plans something that happens unless this attempt is over then.
  void Plan(Duration delay, std::function<void()> what);
  // Plans something that happens unless this object has ended by then.
  void PlanForAgent(Duration delay, std::function<void()> what);
  void TellFailure();
  void Over(bool have_succeeded);
  void SendPart(agent::AttemptRecord record);
  agent::AttemptRecord Record() const;
  int FirstRank() const { return place_.first_rank; }

  Stage& stage_;
  const int node_;
  const std::string name_;
  const std::function<agent::Membership&()> membership_;
  // Shared with the plans, which may outlive this object.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Phase phase_ = Phase::kNone;
  uint64_t attempt_number_ = 0;  // of this object
  agent::NodePlace place_;
  std::optional<int> failed_;   // local rank of the first one that failed
  bool has_lost_peer_ = false;  // that is why it failed
  bool failure_is_told_ = false;
  bool have_succeeded_ = false;
  bool stopped_for_failure_ = false;
  std::optional<agent::AttemptRecord> success_;  // not reported yet
};

}  // namespace rankrun::cluster

#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/coordination/control_message.h"
#include "agent/coordination/coordinator_record.h"
#include "tests/sim/stage.h"

namespace rankrun::sim {

// Checks the invariants of a job from its messages and actions, independently of
// the cores. A world is the lifetime of one coordinator and its next incarnations;
// a coordinator that starts without a record begins another world.
class Checker {
 public:
  explicit Checker(Stage& stage) : stage_(stage) {}

  struct Place {  // of an event
    int node = 0;
    int host = 0;
    int incarnation = 0;
    int world = 0;
  };

  void OnWorldOver(int world) { world_over_.try_emplace(world, stage_.time.now()); }
  void OnFailure() { failures_ += 1; }  // a worker or an agent failed
  void SetPure(bool is_pure = true) { is_pure_ = is_pure; }
  bool is_pure() const { return is_pure_; }
  void SetPartitions() { has_partitions_ = true; }
  void CountStaying(std::function<int(int world)> count) { count_staying_ = std::move(count); }
  void OnDrain(int node) { leaving_.insert(node); }
  void OnClose(int exit_code) { closes_.insert(exit_code); }
  void OnGone(int node) { gone_.insert(node); }

  void OnPrepareTold(int world, const agent::Prepare& message);
  void OnStartRoundSent(int world, const agent::StartRound& message);
  void OnVerdictTold(int world, const agent::Verdict& message);
  void OnVerdictReceived(const Place& place, const agent::Verdict& message);
  void OnKept(int world, const agent::CoordinatorRecord& record);
  void OnSent(const Place& place, const agent::MemberMessage& message, bool workers_are_alive);
  void OnMakeReady(const Place& place, const agent::Prepare& message);
  void OnStart(const Place& place, int round);
  void OnWorkersGone(int node);
  void OnEnd(const Place& place, int exit_code, bool workers_are_alive);

  int rounds() const { return static_cast<int>(granted_.size()); }
  int verdict() const;
  int failures() const { return failures_; }
  bool SomethingRunsAt(int node) const { return running_.contains(node); }

 private:
  using RoundId = std::pair<int, int>;  // world, number
  struct Round {
    std::string record;
    int attempt = 0;
    int node_count = 0;
    int world_size = 0;
    std::map<int, int> ranks = {};  // node rank -> first rank
    std::set<int> prepared = {};    // nodes
    std::set<int> starters = {};
  };
  struct Running {
    int host = 0;
    int world = 0;
    int round = 0;
  };

  void CheckSuccess(int world);
  bool StoodStill(int host);
  void CheckOverlap(const Place& place, int round);

  Stage& stage_;
  std::map<RoundId, Round> rounds_;
  std::set<RoundId> granted_;
  std::map<int, Running> running_;            // by node
  std::map<RoundId, int> running_nodes_;      // count by round
  std::map<int, TimePoint> world_over_;       // death of the guardian of its coordinator
  std::map<int, agent::Verdict> verdicts_;    // by world
  std::map<int, std::set<int>> exit_codes_;   // of the verdicts that a node received, by node
  std::map<int, std::set<int>> finish_seen_;  // nodes, by world
  std::map<int, int> last_attempt_;           // by world
  std::map<int, TimePoint> finish_;           // start of the finish phase, by world
  std::set<int> knows_success_;               // nodes, of any world
  std::set<int> leaving_;
  std::set<int> gone_;
  std::set<int> closes_;
  int failures_ = 0;
  bool is_pure_ = false;  // every restart is charged to the budget
  bool has_partitions_ = false;
  std::function<int(int)> count_staying_;  // by world; -1: unknown
};

}  // namespace rankrun::sim

#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/coordination/coordinator.h"
#include "agent/coordination/liveness_watch.h"
#include "agent/coordination/member.h"
#include "agent/coordination/member_end.h"
#include "agent/coordination/postponed_request.h"
#include "tests/sim/checker.h"
#include "tests/sim/network.h"
#include "tests/sim/stage.h"

namespace rankrun::sim {

struct NodeSetup {
  int number = 0;
  int host = 0;
  int coordinator_host = 0;
  int world = 0;  // 0: without the coordinator
  std::optional<int> claimed_rank = {};
};

// One rankrun on one machine: the guardian, the successive agent processes and the
// workers.
class Node {
 public:
  enum class Life { kUp, kDown, kOver };

  Node(Stage& stage, Network& network, Checker& checker, const NodeSetup& setup);

  void StartAgent();
  bool is_over() const { return life_ == Life::kOver; }
  // Whether a worker process never dies.
  bool is_stuck() const { return workers_.is_stuck_for_ever; }
  bool is_up() const { return life_ == Life::kUp; }
  bool has_work() const { return member_ && member_->phase() == agent::MemberPhase::kRunning; }
  bool has_coordinator() const { return setup_.world != 0; }
  bool is_leaving() const { return is_leaving_; }
  // Whether the link has lasted so long that the coordinator must know of it.
  bool is_linked_to(int world) const {
    return life_ == Life::kUp && link_ != 0 && world_ == world &&
           stage_.time.now() - linked_since_ > std::chrono::seconds(2);
  }
  const std::string& name() const { return name_; }
  int number() const { return setup_.number; }
  int host() const { return setup_.host; }

  // Faults.
  void CrashAgent(const std::string& why);
  void CrashAfter(int actions) { crash_in_ = actions; }
  void StopAgent(Duration how_long);
  void LoseHost();
  void KillGuardian();
  void FailWorkers(bool is_primary);
  void Drain();
  void Close();

 private:
  // One side of the agent's connections.
  class Face final : public NetworkUser {
   public:
    Face(Node& node, bool is_coordinator) : node_(node), is_coordinator_(is_coordinator) {}
    int host() const override { return node_.setup_.host; }
    int world() const override { return node_.setup_.world; }
    void OnConnected(ConnectionId id, NetworkUser* peer) override;
    void OnDialFailed(const std::string& why) override;
    void OnAccepted(ConnectionId) override {}
    void OnBytes(ConnectionId id, const Bytes& bytes) override;
    void OnClosed(ConnectionId id) override;

   private:
    Node& node_;
    const bool is_coordinator_;
  };
  struct Workers {
    bool are_alive = false;
    bool are_killed = false;  // by SIGKILL, which no later signal delays
    bool is_stuck = false;    // killed by SIGKILL, but the processes still exist
    bool is_stuck_for_ever = false;
    bool is_over_told = true;  // WorkersOver has been sent to the member
    int round = 0;
    int first_rank = 0;  // global rank of the first one
    uint64_t plan = 0;   // number of the newest plan, which cancels earlier ones
  };

  // Runs `what` as soon as this agent process runs; drops it with the process.
  void Post(std::function<void()> what);
  void Wake();
  TimePoint AwakeAt();
  void StepMember(const agent::MemberEvent& event);
  void StepCoordinator(const agent::CoordinatorEvent& event);
  void ArmMember();
  void ArmCoordinator();
  bool CrashesNow();
  void Dial();
  void DialLater();
  void LookAtLease();
  // Dials of liveness ports, in liveness.cc.
  static uint16_t PortOf(int number);
  void OpenLivenessPort();
  void NoteMessage(ConnectionId peer, const agent::MemberMessage& message);
  void NoteBreak(ConnectionId peer);
  void ArmWatch();
  void DialPorts();
  void OnPortDialled(uint64_t dial, agent::LivenessAnswer answer);
  void NoteAnswer(const agent::CoordinatorMessage& message);
  Checker::Place Here() const;
  void Request(const agent::MemberEvent& event);
  void Carry(const std::optional<agent::MemberEvent>& request);
  agent::EndView ViewOfEnd();
  void Carry(const std::vector<agent::EndAction>& actions);
  void CheckEnd();
  void End(const std::string& why);

  void Do(const agent::Send& action);
  void Do(const agent::MakeReady& action);
  void Do(const agent::StartWorkers& action);
  void Do(const agent::StopWorkers& action);
  void Do(const agent::ReportSuccess&) {}
  void Do(const agent::ShowRoll&) {}
  void Do(const agent::EndNode& action);
  void Do(const agent::SendMessage& action);
  void Do(const agent::HangUp& action);
  void Do(const agent::PersistRecord& action);
  void Do(const agent::Retire&);
  void Do(const agent::Announcement& action);

  // Workers.
  void PlanWorkers(Duration delay, std::function<void()> what);
  void TerminateWorkers();
  void KillWorkers();
  void LetKernelKillWorkers();
  bool GetStuck(Duration after);
  void BeStuck();
  void WorkersGone(bool have_succeeded);
  Duration KillTime();
  void StartNextLife();
  void StartCoordinator(TimePoint now);

  Stage& stage_;
  Network& network_;
  Checker& checker_;
  const NodeSetup setup_;
  std::string name_;
  uint64_t id_ = 0;
  Face member_face_{*this, false};
  Face coordinator_face_{*this, true};

  Life life_ = Life::kDown;
  bool guardian_lives_ = true;
  int incarnation_ = -1;
  uint64_t agent_life_ = 0;
  std::optional<agent::CoordinatorRecord> kept_;
  std::optional<agent::Member> member_;
  std::optional<agent::Coordinator> coordinator_;
  std::optional<agent::LivenessWatch> watch_;  // of the coordinator
  std::map<ConnectionId, uint64_t> watched_;   // nodes of watch_
  TimePoint watch_armed_{};
  std::optional<agent::PostponedRequest> request_;
  std::optional<agent::MemberEnd> end_;
  bool has_retired_ = false;
  bool coordinator_was_used_ = false;  // it has received a message
  bool is_leaving_ = false;
  int crash_in_ = -1;
  ConnectionId link_ = 0;
  int world_ = 0;  // world of the coordinator at the other end of the link
  int failed_dials_ = 0;
  uint64_t dial_life_ = 0;  // value of agent_life_ at the last dial
  TimePoint linked_since_{};
  TimePoint hello_sent_{};
  std::map<uint64_t, TimePoint> beats_sent_;  // on this link, by number
  TimePoint answered_{};                      // send time of the newest message that was answered
  TimePoint stopped_until_{};
  TimePoint lease_end_{};  // on the clock of the host
  std::deque<std::function<void()>> inbox_;
  TimePoint member_armed_{};
  TimePoint coordinator_armed_{};
  Workers workers_;
};

}  // namespace rankrun::sim

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/guardian/incarnation.h"
#include "agent/nodes/membership.h"
#include "base/fd.h"
#include "base/uv/uv_loop.h"
#include "tests/cluster/stage.h"
#include "tests/cluster/workers.h"

namespace rankrun::cluster {

// A machine of the job with its guardian, the real membership of its agent, and its workers.
class Node {
 public:
  Node(Stage& stage, int number, agent::JobSpec spec);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Runs the due events of its agent. Returns whether others may be due at this instant.
  bool Run();
  // When its agent wants to run next; empty: never, unless something arrives.
  std::optional<TimePoint> next() const;
  int poll_fd() const;  // readable if something has arrived; -1: the agent does not run

  void KillAgent();    // its guardian kills the workers and starts the next one
  void LoseMachine();  // without a word
  void Freeze(Duration length);
  void Drain();
  void Close();

  bool is_over() const { return is_over_; }
  bool is_lost() const { return is_lost_; }
  bool has_stood_still() const { return has_stood_still_; }
  bool is_awake() const { return stage_.IsAwake(number_); }
  Workers* workers() { return life_ ? life_->workers.get() : nullptr; }
  const std::string& name() const { return name_; }

 private:
  // One agent. The loop ends last.
  struct Life {
    Loop loop;
    std::unique_ptr<agent::Incarnation> incarnation;
    std::unique_ptr<Workers> workers;
    Fd store;  // listens for the workers of an attempt
    std::unique_ptr<agent::Membership> membership;
  };

  void StartAgent();
  agent::MembershipCallbacks CallbacksOf(Life& life);
  static Result<uint16_t> OpenStore(Life& life);
  void OnEnd(int exit_code, const std::string& text);
  void EndLife();
  void ActAsGuardian();

  Stage& stage_;
  const int number_;
  const std::string name_;
  const agent::JobSpec spec_;
  agent::JobRecord record_;  // as the guardian keeps it
  Fd liveness_;              // the guardian's
  std::optional<agent::GuardianLink> guardian_;
  TimePoint lease_end_{};  // the guardian then kills the agent
  std::unique_ptr<Life> life_;
  std::unique_ptr<Life> ended_;  // until no callback of it runs
  bool is_over_ = false;
  bool is_lost_ = false;
  bool has_stood_still_ = false;
};

}  // namespace rankrun::cluster

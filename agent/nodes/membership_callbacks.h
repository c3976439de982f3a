#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "agent/coordination/coordinator_events.h"
#include "agent/coordination/member.h"
#include "agent/coordination/relay.h"
#include "agent/job/node_place.h"
#include "agent/report/attempt_record.h"

namespace rankrun::agent {

// Requests of Membership to its owner.
struct MembershipCallbacks {
  // Opens the store of an attempt on this node; returns its port.
  std::function<Result<uint16_t>()> open_store;
  // Lets only `clients` connect to the store; empty: all.
  std::function<void(const std::vector<std::string>& clients)> admit_only;
  std::function<void(const NodePlace&)> start;
  // NoteWorkersOver follows, even if no worker runs.
  std::function<void(const StopWorkers&)> stop;
  // A worker has failed elsewhere: report this node's workers, which had succeeded.
  std::function<void()> report_success;
  std::function<void(const std::string& text)> say;
  std::function<void(const std::string& text)> on_node_lost;
  // The coordinator, which runs in this agent, has decided.
  std::function<void(const Announcement&)> on_decision = {};
  // Gets the merged report on a failed attempt.
  std::function<void(const AttemptRecord&)> show_report;
  std::function<void(const HealthOrder&)> on_health_order;
  std::function<void(const Relay&)> on_relay = {};  // from the coordinator
  // Clients of this host want to use the store of another one: may they?
  std::function<ClientVerdicts(const WhoseClients&)> judge_clients = {};
  // Answers AskWhose.
  std::function<void(const ClientVerdict&)> on_verdict = {};
  // Nothing of the job runs here any more, and no other node needs this one.
  std::function<void(int exit_code, const std::string& text)> on_end;
};

}  // namespace rankrun::agent

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/control/control_server.h"
#include "agent/coordination/coordinator.h"
#include "agent/coordination/query_relay.h"
#include "agent/coordination/refusal_limit.h"
#include "agent/job/job_spec.h"
#include "agent/nodes/client_relay.h"
#include "agent/nodes/job_health.h"
#include "agent/nodes/node_prober.h"
#include "agent/nodes/report_merger.h"
#include "agent/nodes/secret_refusals.h"
#include "base/net/socket_address.h"
#include "base/uv/uv_stream.h"
#include "base/uv/uv_timer.h"

namespace rankrun::agent {

// Runs the coordinator: owns its connections and its clock, and has its record
// persisted.
// Thread: loop.  Lifetime: may not end inside one of its own callbacks.
class CoordinatorHost {
 public:
  struct Callbacks {
    // Must have persisted the record when it returns.
    std::function<void(const CoordinatorRecord&)> keep;
    // No node needs the coordinator any more.
    std::function<void()> on_retired;
    // The coordinator has decided; may be empty.
    std::function<void(const Announcement&)> on_decision = {};
  };

  // `earlier`: record that the previous incarnation persisted. `spec` has nodes
  // and outlives this object.
  CoordinatorHost(Loop& loop, const JobSpec& spec, uint64_t own_node,
                  std::optional<CoordinatorRecord> earlier, Callbacks callbacks);
  CoordinatorHost(const CoordinatorHost&) = delete;
  CoordinatorHost& operator=(const CoordinatorHost&) = delete;

  // Listens at `port`. Errors: those of store::ListenOnOnePort.
  Result<void> Listen(uint16_t port) { return server_.Listen(port); }
  uint16_t port() const { return server_.port(); }  // after Listen
  // This host's address to which a node connected last, loopback excluded.
  const std::optional<SocketAddress>& route() const { return route_; }
  // Takes a connection that arrived at the store's port.
  void Adopt(std::unique_ptr<Stream> stream, std::string_view first_bytes) {
    server_.Adopt(std::move(stream), first_bytes);
  }

  // Whether any node has ever connected.
  bool was_used() const { return was_used_; }

 private:
  void OnMessage(PeerId peer, std::string_view bytes);
  void Step(const CoordinatorEvent& event);
  void Act(const SendMessage& action);
  void Act(const HangUp& action);
  void Act(const PersistRecord& action);
  void Act(const Retire&);
  void Act(const Announcement& action);
  void Forget(PeerId peer);
  void Watch(PeerId peer, uint64_t node);
  void OnBroken(PeerId peer);
  void RecordSender(PeerId peer, const MemberMessage& message);
  void Reject(PeerId peer, const std::string& why);
  void OnWrongSecret(const std::string& claimed_hello);
  std::string NameOf(PeerId peer) const;
  Result<void> CheckAddresses(PeerId peer, Prepared& message);
  void OnReport(PeerId peer, const Report& report);
  void OnHealth(PeerId peer, const NodeHealth& health);
  void OnStacks(PeerId peer, const NodeStacks& stacks);
  void Order(const std::vector<HealthOrder>& orders);
  void RepeatReport(PeerId peer, const Hello& hello);
  void LookAtReports();
  void SendReports(const std::vector<ReportMerger::Sending>& sendings);
  std::optional<RoundOutcome> DecidedOutcome() const;
  void Pass(const QueryRelay::Messages& messages);
  void OnClients(PeerId peer, const MemberMessage& message);
  void Pass(const ClientRelay::Messages& messages);

  Callbacks callbacks_;
  bool was_used_ = false;
  const bool is_store_strict_;
  const uint64_t own_node_;
  std::map<PeerId, SocketAddress> peers_;  // remote addresses
  std::map<PeerId, uint64_t> watched_;     // nodes of prober_
  std::set<AddressBytes> warned_of_;       // nodes with unusable addresses
  RefusalLimit refusals_;
  SecretRefusals secret_refusals_;
  const std::string wrong_secrets_;  // for messages: all other nodes have another secret
  ReportMerger reports_;
  JobHealth health_;
  Coordinator core_;
  NodeProber prober_;
  ControlServer server_;
  std::optional<SocketAddress> route_;
  Timer tick_;
  Timer merge_;
  QueryRelay relay_;
  Timer relay_timer_;
  ClientRelay clients_;
  Timer clients_timer_;
  Timer stacks_timer_;
  Timer refusals_timer_;
};

}  // namespace rankrun::agent

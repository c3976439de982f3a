#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/job/nodes_spec.h"
#include "base/clock.h"
#include "base/net/socket_address.h"
#include "base/result.h"

namespace rankrun::agent {

// Start the coordinator in this agent; OnHosting or OnPortFailed follows.
struct StartCoordinator {};
// Determine in the background whether `host` is this one; OnFound follows once it is known.
struct FindHost {
  std::string host;
};
// Show the text to the user.
struct ShowNote {
  std::string text;
};
using HostingAction = std::variant<StartCoordinator, FindHost, ShowNote>;

// First step of an agent.
enum class HostingStart {
  kJoin,    // the coordinator is elsewhere, or its place is not known yet
  kHost,    // as StartCoordinator
  kLookUp,  // look up the first endpoint and call OnLookedUp
};

// Decides whether this node hosts the coordinator. It belongs to the host of the first
// endpoint. Pure: no clock, no I/O.
class Hosting {
 public:
  // `nodes` outlives this object. `has_record`: an earlier agent of this node has hosted the
  // coordinator.
  Hosting(const NodesSpec& nodes, bool is_first_agent, bool has_record);

  static constexpr Duration kPatience = std::chrono::seconds(10);  // before the failures are shown

  HostingStart Start() const;
  // `is_here`: whether the first endpoint is this host.
  HostingStart OnLookedUp(const Result<bool>& is_here);

  void OnHosting() { is_hosting_ = true; }
  // The coordinator's port cannot be opened. Errors: kInvalid if this is not due to another
  // node of the host.
  Result<void> OnPortFailed(const Error& why);

  // This node begins to dial the endpoints. Continues a look-up that has failed, and checks the
  // further endpoints.
  std::vector<HostingAction> OnJoining() const;
  // `is_joining`: this node has not reached a coordinator, and has not ended.
  std::vector<HostingAction> OnFound(const std::string& host, bool is_here, bool is_joining);
  // Another job answers at the endpoint.
  void OnOtherJob(const Endpoint& endpoint);
  // All dials have failed for this long; shows `failures`, the latest ones, once.
  std::vector<HostingAction> OnUnreached(const std::string& failures, Duration waited);
  // Nothing listens at the endpoint.
  std::vector<HostingAction> OnRefused(const Endpoint& endpoint, bool is_joining) const;

  // Port at which the coordinator listens; none if it shares that of the store.
  std::optional<uint16_t> port() const;
  // Returns where this node dials the coordinator: if it is here, at last by loopback, because the
  // endpoint may not lead back here.
  std::vector<Endpoint> Endpoints() const;
  // Returns a hint if this node does not host the coordinator because of the address of the first
  // endpoint: that may be the address of no node.
  std::string UnownedHint() const;
  // Returns the addresses that other nodes use for this one. `of_link`: this node's address on
  // the connection to the coordinator.
  std::vector<std::string> OwnAddresses(const std::optional<SocketAddress>& of_link) const;
  // Returns this node's address on the way to other nodes, from the latest connections of the
  // coordinator that it hosts and of its own link: the host may reach itself by another interface
  // than the one by which other nodes reach it.
  std::optional<SocketAddress> Route(const std::optional<SocketAddress>& of_coordinator,
                                     const std::optional<SocketAddress>& of_link) const {
    return is_hosting_ ? of_coordinator : of_link;
  }
  // Returns a hint if the coordinator is here, but at a loopback address, because each host
  // then waits for itself.
  std::string LoopbackHint() const;

 private:
  const std::string& first() const { return nodes_.endpoints[0].host; }
  bool IsFirstHere(bool has_address) const;
  bool MayTakePort(const Endpoint& endpoint) const;
  std::vector<HostingAction> CheckFurtherEndpoints() const;
  std::vector<std::string> EndpointHosts() const;

  const NodesSpec& nodes_;
  const bool is_first_agent_;
  const bool has_record_;
  bool is_hosting_ = false;
  bool is_elsewhere_ = false;    // the first endpoint is another host
  std::string lookup_error_;     // of the first endpoint; or empty
  bool port_was_taken_ = false;  // when this node would have hosted the coordinator
  bool was_other_job_ = false;   // at that port
  bool is_unreached_shown_ = false;
};

}  // namespace rankrun::agent

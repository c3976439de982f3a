#include "agent/coordination/hosting.h"

#include <algorithm>

#include "base/format.h"
#include "base/net/host_port.h"

namespace rankrun::agent {

Hosting::Hosting(const NodesSpec& nodes, bool is_first_agent, bool has_record)
    : nodes_(nodes), is_first_agent_(is_first_agent), has_record_(has_record) {}

// A later agent hosts the coordinator only if an earlier one did.
HostingStart Hosting::Start() const {
  if (!is_first_agent_) return has_record_ ? HostingStart::kHost : HostingStart::kJoin;
  if (nodes_.is_host) return *nodes_.is_host ? HostingStart::kHost : HostingStart::kJoin;
  return HostingStart::kLookUp;
}

HostingStart Hosting::OnLookedUp(const Result<bool>& is_here) {
  if (!is_here) {
    lookup_error_ = is_here.error().message;
    return HostingStart::kJoin;
  }
  bool is_ours = IsFirstHere(*is_here);
  is_elsewhere_ = !is_ours;
  return is_ours ? HostingStart::kHost : HostingStart::kJoin;
}

// Another node on this host may have the port. It may have taken it while this node had no
// agent; then it hosts the coordinator, whatever is_host says.
Result<void> Hosting::OnPortFailed(const Error& why) {
  if (nodes_.is_host && is_first_agent_) {
    return Error{ErrorCode::kInvalid, nodes_.endpoint_origin + ": " + why.message};
  }
  port_was_taken_ = true;
  return {};
}

std::vector<HostingAction> Hosting::OnJoining() const {
  if (is_elsewhere_) return CheckFurtherEndpoints();
  if (lookup_error_.empty()) return {};
  return {ShowNote{"rankrun: " + nodes_.endpoint_origin + ": " + lookup_error_ +
                   "; trying again for up to " + FormatSeconds(nodes_.join_timeout) +
                   ", because this node may have to host the coordinator\n"},
          FindHost{first()}};
}

// The name of a node is its own, also where it has the address of a gateway.
bool Hosting::IsFirstHere(bool has_address) const {
  return has_address || first() == nodes_.node_name;
}

// A node that has reached a coordinator must not start another. A further endpoint that is
// this host misleads the user: such endpoints are other addresses of the first one's host, not
// other hosts for the coordinator.
std::vector<HostingAction> Hosting::OnFound(const std::string& host, bool is_here,
                                            bool is_joining) {
  if (host == first()) {
    bool is_ours = IsFirstHere(is_here);
    is_elsewhere_ = !is_ours;
    if (!is_joining || is_hosting_) return {};
    if (is_ours) return {StartCoordinator{}};
    return CheckFurtherEndpoints();
  }
  if (!is_here) return {};
  return {ShowNote{"rankrun: " + nodes_.endpoint_origin + ": " + host +
                   " is this host, but the coordinator runs only at the first endpoint, " +
                   first() + "; the others must be addresses of the same host\n"}};
}

std::vector<HostingAction> Hosting::CheckFurtherEndpoints() const {
  std::vector<HostingAction> actions;
  for (const std::string& host : EndpointHosts()) {
    if (host != first()) actions.push_back(FindHost{host});
  }
  return actions;
}

bool Hosting::MayTakePort(const Endpoint& endpoint) const {
  return port_was_taken_ && !is_hosting_ && endpoint == nodes_.endpoints[0];
}

void Hosting::OnOtherJob(const Endpoint& endpoint) {
  if (MayTakePort(endpoint)) was_other_job_ = true;
}

// Hosts the coordinator if another job has released the port.
std::vector<HostingAction> Hosting::OnRefused(const Endpoint& endpoint, bool is_joining) const {
  if (!MayTakePort(endpoint) || !was_other_job_ || !is_joining) return {};
  return {StartCoordinator{}};
}

std::optional<uint16_t> Hosting::port() const {
  if (nodes_.shares_port) return std::nullopt;
  return nodes_.endpoints[0].port;
}

std::vector<Endpoint> Hosting::Endpoints() const {
  std::vector<Endpoint> endpoints = nodes_.endpoints;
  Endpoint own{"127.0.0.1", nodes_.endpoints[0].port};
  bool is_known = std::ranges::find(endpoints, own) != endpoints.end();
  if (is_hosting_ && !is_known) endpoints.push_back(std::move(own));
  return endpoints;
}

std::vector<HostingAction> Hosting::OnUnreached(const std::string& failures, Duration waited) {
  if (is_unreached_shown_ || waited < kPatience) return {};
  is_unreached_shown_ = true;
  return {ShowNote{"rankrun: no coordinator yet: " + failures + UnownedHint() +
                   "; trying again for up to " + FormatSeconds(nodes_.join_timeout) + "\n"}};
}

std::string Hosting::UnownedHint() const {
  if (!is_elsewhere_ || nodes_.is_host) return "";
  return "; " + first() + " (" + nodes_.endpoint_origin +
         ") is no address of this node; if no other node has it either, because it is that of a "
         "gateway or a Kubernetes Service, set --rdzv-conf is_host=1 on the node that it leads to, "
         "and is_host=0 on the others";
}

std::vector<std::string> Hosting::OwnAddresses(const std::optional<SocketAddress>& of_link) const {
  if (!nodes_.local_addr.empty()) return {nodes_.local_addr};
  if (is_hosting_) return EndpointHosts();
  if (!of_link) return {};
  return {of_link->Host()};
}

std::string Hosting::LoopbackHint() const {
  if (!is_hosting_ || !IsLoopback(first())) return "";
  return "; " + first() + " (" + nodes_.endpoint_origin +
         ") is a loopback address: nodes on other hosts cannot connect";
}

// Returns the hosts of all endpoints, each once.
std::vector<std::string> Hosting::EndpointHosts() const {
  std::vector<std::string> hosts;
  for (const Endpoint& endpoint : nodes_.endpoints) {
    if (std::ranges::find(hosts, endpoint.host) == hosts.end()) hosts.push_back(endpoint.host);
  }
  return hosts;
}

}  // namespace rankrun::agent

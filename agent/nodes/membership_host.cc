#include <algorithm>
#include <utility>

#include "agent/nodes/control_codec.h"
#include "agent/nodes/membership.h"
#include "base/format.h"
#include "base/log.h"

// The third part of Membership: decides whether this node hosts the
// coordinator.

namespace rankrun::agent {
namespace {

std::optional<CoordinatorRecord> EarlierOf(const JobRecord& record) {
  if (record.state.empty()) return std::nullopt;
  auto decoded = DecodeCoordinatorRecord(record.state);
  return decoded ? std::optional(std::move(*decoded)) : std::nullopt;
}

}  // namespace

// A later incarnation hosts the coordinator only if an earlier one did.
Result<void> Membership::Open() {
  if (!incarnation_.is_first()) {
    return incarnation_.record().state.empty() ? Result<void>() : Host();
  }
  if (nodes_.is_host) return *nodes_.is_host ? Host() : Result<void>();
  auto is_here = IsThisHost(nodes_.endpoints[0].host);
  if (!is_here) {
    lookup_error_ = std::move(is_here).error().message;
    return {};
  }
  is_elsewhere_ = !*is_here;
  return *is_here ? Host() : Result<void>();
}

Result<void> Membership::Host() {
  CoordinatorHost::Callbacks callbacks{.keep =
                                           [this](const CoordinatorRecord& coordinator) {
                                             JobRecord record = incarnation_.record();
                                             record.state = Encode(coordinator);
                                             incarnation_.Write(std::move(record));
                                           },
                                       .on_retired =
                                           [this] {
                                             host_has_retired_ = true;
                                             end_timer_.Start(Duration::zero());
                                           },
                                       .on_decision = callbacks_.on_decision};
  auto host =
      std::make_unique<CoordinatorHost>(loop_, spec_, incarnation_.record().node_id,
                                        EarlierOf(incarnation_.record()), std::move(callbacks));
  if (!nodes_.shares_port) {
    auto listening = host->Listen(nodes_.endpoints[0].port);
    // Another node on this host has the port. It may have taken it while this node
    // had no agent; then it hosts the coordinator, whatever is_host says.
    if (!listening && (!nodes_.is_host || !incarnation_.is_first())) {
      port_was_taken_ = true;
      return {};
    }
    if (!listening) {
      Error error = std::move(listening).error();
      return Error{ErrorCode::kInvalid, nodes_.endpoint_origin + ": " + error.message};
    }
  }
  host_ = std::move(host);
  JobRecord record = incarnation_.record();
  if (record.state.empty()) record.state = Encode(CoordinatorRecord{});
  incarnation_.Write(std::move(record));
  return {};
}

// Continues a look-up that failed in Open, and warns of misleading endpoints.
void Membership::FindHost() {
  const std::string& first = nodes_.endpoints[0].host;
  if (!lookup_error_.empty()) {
    callbacks_.say("rankrun: " + nodes_.endpoint_origin + ": " + lookup_error_ +
                   "; trying again for up to " + FormatSeconds(nodes_.join_timeout) +
                   ", because this node may have to host the coordinator\n");
    Find(first, [this](bool is_here) { OnFirstFound(is_here); });
  }
  if (is_elsewhere_) CheckOtherEndpoints();
}

void Membership::Find(const std::string& host, std::function<void(bool is_here)> on_found) {
  finders_.push_back(std::make_unique<HostFinder>(loop_, host, std::move(on_found)));
}

// Hosts the coordinator if another job has released the port.
void Membership::TakeFreedPort(const DialFailure& failure) {
  if (!port_was_taken_ || host_ != nullptr || failure.endpoint != nodes_.endpoints[0]) return;
  if (failure.kind == DialFailureKind::kOtherJob) was_other_job_ = true;
  if (failure.kind == DialFailureKind::kRefused && was_other_job_) OnFirstFound(true);
}

// A member that has reached a coordinator must not start another.
void Membership::OnFirstFound(bool is_here) {
  if (core_.phase() != MemberPhase::kJoining || end_) return;
  if (!is_here) return CheckOtherEndpoints();
  if (auto hosted = Host(); !hosted) LogWarn(hosted.error().message);
}

// Warns if a further endpoint is this host: further endpoints are other
// addresses of the first one's host, not other hosts for the coordinator.
void Membership::CheckOtherEndpoints() {
  std::vector<std::string> hosts = EndpointHosts();
  for (size_t i = 1; i < hosts.size(); ++i) {
    Find(hosts[i], [this, host = hosts[i]](bool is_here) {
      if (!is_here) return;
      callbacks_.say("rankrun: " + nodes_.endpoint_origin + ": " + host +
                     " is this host, but the coordinator runs only at the first endpoint, " +
                     nodes_.endpoints[0].host +
                     "; the others must be addresses of the same host\n");
    });
  }
}

// Returns the hosts of all endpoints, each once.
std::vector<std::string> Membership::EndpointHosts() const {
  std::vector<std::string> hosts;
  for (const Endpoint& endpoint : nodes_.endpoints) {
    if (std::ranges::find(hosts, endpoint.host) == hosts.end()) hosts.push_back(endpoint.host);
  }
  return hosts;
}

}  // namespace rankrun::agent

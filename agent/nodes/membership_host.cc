#include <utility>

#include "agent/nodes/control_codec.h"
#include "agent/nodes/membership.h"
#include "base/log.h"
#include "base/net/network_interface.h"

// The third part of Membership: hosts the coordinator if Hosting decides so.

namespace rankrun::agent {
namespace {

std::optional<CoordinatorRecord> EarlierOf(const JobRecord& record) {
  if (record.state.empty()) return std::nullopt;
  auto decoded = DecodeCoordinatorRecord(record.state);
  return decoded ? std::optional(std::move(*decoded)) : std::nullopt;
}

}  // namespace

Result<void> Membership::Open() {
  HostingStart start = hosting_.Start();
  if (start == HostingStart::kLookUp) {
    start = hosting_.OnLookedUp(IsThisHost(nodes_.endpoints[0].host));
  }
  return start == HostingStart::kHost ? Host() : Result<void>();
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
                                             end_.OnRetired(Now());
                                             ArmEnd();
                                           },
                                       .on_decision = callbacks_.on_decision};
  auto host =
      std::make_unique<CoordinatorHost>(loop_, spec_, incarnation_.record().node_id,
                                        EarlierOf(incarnation_.record()), std::move(callbacks));
  if (auto port = hosting_.port()) {
    auto listening = host->Listen(*port);
    if (!listening) return hosting_.OnPortFailed(listening.error());
  }
  host_ = std::move(host);
  hosting_.OnHosting();
  JobRecord record = incarnation_.record();
  if (record.state.empty()) record.state = Encode(CoordinatorRecord{});
  incarnation_.Write(std::move(record));
  return {};
}

void Membership::Carry(const std::vector<HostingAction>& actions) {
  for (const HostingAction& action : actions) {
    std::visit([this](const auto& a) { Act(a); }, action);
  }
}

void Membership::Act(const StartCoordinator&) {
  auto hosted = Host();
  if (!hosted) return LogWarn(hosted.error().message);
  // The endpoint of the job may lead others here, and this node elsewhere.
  if (link_ != nullptr) link_->SetEndpoints(hosting_.Endpoints());
}

void Membership::Act(const FindHost& action) {
  auto on_found = [this, host = action.host](bool is_here) {
    Carry(hosting_.OnFound(host, is_here, IsJoining()));
  };
  finders_.push_back(std::make_unique<HostFinder>(loop_, action.host, std::move(on_found)));
}

void Membership::NoteDialFailure(const DialFailure& failure) {
  if (failure.kind == DialFailureKind::kOtherJob) hosting_.OnOtherJob(failure.endpoint);
  if (failure.kind == DialFailureKind::kRefused) {
    Carry(hosting_.OnRefused(failure.endpoint, IsJoining()));
  }
  if (IsUnreached(failure)) {
    Carry(hosting_.OnUnreached(link_->FailureText(Now()), Now() - begun_));
  }
}

// Returns whether this node has yet to reach a rankrun at that endpoint.
bool Membership::IsUnreached(const DialFailure& failure) const {
  return IsJoining() && failure.kind <= DialFailureKind::kNotRankrun;
}

bool Membership::IsJoining() const {
  return core_.phase() == MemberPhase::kJoining && !end_.has_ended();
}

}  // namespace rankrun::agent

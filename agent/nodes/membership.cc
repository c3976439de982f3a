#include "agent/nodes/membership.h"

#include <algorithm>
#include <chrono>
#include <type_traits>
#include <utility>
#include <variant>

#include "agent/control/munge.h"
#include "agent/job/exit_codes.h"
#include "agent/nodes/admitted_users.h"
#include "agent/nodes/control_codec.h"
#include "agent/nodes/longest_stop.h"
#include "base/format.h"
#include "base/log.h"
#include "base/net/network_interface.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_stream.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kDialTimeout{3};
// Heartbeats to the guardian per node timeout.
constexpr int kBeatsPerTimeout = 6;
constexpr int kTriesPerTimeout = 100;

std::unique_ptr<LivenessPort> OpenLivenessPort(Loop& loop, Incarnation& incarnation) {
  auto opened = LivenessPort::Open(loop, incarnation);
  if (opened) return std::move(*opened);
  LogWarn("if this node is killed, the others notice after --node-timeout only: " +
          opened.error().message);
  return nullptr;
}

// Returns whether the coordinator refused the last dial of any endpoint. One refusal
// is enough, because all endpoints lead to the same coordinator.
bool IsRefused(const std::vector<DialFailure>& failures) {
  return std::ranges::any_of(failures,
                             [](const DialFailure& failure) { return IsRefusal(failure.kind); });
}

// Returns a line with the origin of this node's secret; empty without a secret.
std::string SecretAdvice(const NodesSpec& nodes, const Endpoint& endpoint) {
  const std::string& origin = nodes.secret_origin;
  if (origin.empty()) return "";
  std::string text = "rankrun: the secret of node " + nodes.node_name + " is from " + origin;
  if (!nodes.secret_is_own) return text + "\n";
  if (!nodes.secret_advice.empty()) return text + nodes.secret_advice + "\n";
  return text + "; all nodes need the same file, so copy it here: scp " + endpoint.host + ":" +
         origin + " " + origin + "\n";
}

}  // namespace

Membership::Membership(Loop& loop, const JobSpec& spec, Incarnation& incarnation,
                       Callbacks callbacks)
    : loop_(loop),
      spec_(spec),
      nodes_(*spec.nodes),
      incarnation_(incarnation),
      callbacks_(std::move(callbacks)),
      liveness_(OpenLivenessPort(loop, incarnation)),
      hosting_(nodes_, incarnation.is_first(), !incarnation.record().state.empty()),
      core_({.join_timeout = nodes_.join_timeout, .node_timeout = nodes_.node_timeout}, SelfHello(),
            Now()),
      postponed_request_(nodes_.node_timeout),
      end_(nodes_.node_timeout),
      store_search_(nodes_.node_timeout),
      tick_(loop, [this] { Step(MemberTick{}); }),
      beat_(loop,
            [this] {
              Step(MemberTick{});
              Beat();
            }),
      next_dial_(loop,
                 [this] {
                   dial_.reset();
                   Search(store_search_.Next(ViewOfStore()));
                 }),
      request_timer_(loop, [this] { Carry(postponed_request_.OnTick(Now())); }),
      end_timer_(loop, [this] { Carry(end_.OnTick(ViewOfEnd())); }),
      client_questions_(nodes_.node_timeout),
      clients_timer_(loop, [this] { SendQuestions(); }) {}

Hello Membership::SelfHello() const {
  return {.node = incarnation_.record().node_id,
          .incarnation = incarnation_.record().incarnation,
          .name = nodes_.node_name,
          .slots = spec_.workers,
          .min_nodes = nodes_.min,
          .max_nodes = nodes_.max,
          .node_rank = nodes_.node_rank,
          .node_index = nodes_.node_index,
          .stop_ms = static_cast<int>(LongestStop(spec_).count()),
          .liveness_port = liveness_ ? std::optional(liveness_->number()) : std::nullopt};
}

void Membership::Adopt(std::unique_ptr<Stream> stream, std::string_view first_bytes) {
  if (host_ != nullptr) host_->Adopt(std::move(stream), first_bytes);
}

void Membership::Begin() {
  JobRecord record = incarnation_.record();
  record.may_restart = true;
  incarnation_.Write(std::move(record));
  begun_ = Now();
  link_ = std::make_unique<ControlLink>(
      loop_,
      LinkOptions{.endpoints = hosting_.Endpoints(),
                  .job_id = spec_.run_id,
                  .secret = nodes_.secret,
                  .make_hello = [this] { return MakeHello(); },
                  .open_credential = CredentialOpener(),
                  .admits_user = AdmittedUsers(spec_)},
      ControlLink::Callbacks{
          .on_up = [this] { OnUp(); },
          .on_message = [this](const std::string& bytes) { OnMessage(bytes); },
          .on_down = [this](const Error& why) { Step(LinkDown{why.message}); },
          .on_failed =
              [this](const DialFailure& failure) {
                WarnOnce(failure);
                NoteDialFailure(failure);
                const std::string hint = IsUnreached(failure) ? hosting_.UnownedHint() : "";
                Step(LinkDown{link_->FailureText(Now()) + hint, IsRefused(link_->failures())});
              }});
  Carry(hosting_.OnJoining());
  Step(MemberTick{});
}

std::function<Result<std::string>(const std::string&)> Membership::CredentialOpener() const {
  if (nodes_.munge_credential.empty()) return {};
  return [](const std::string& credential) { return agent::OpenCredential(credential); };
}

// Reports the lease to the guardian. The guardian kills this agent and its
// workers if no other heartbeat arrives before the lease ends.
void Membership::Beat() {
  auto lease = std::chrono::ceil<std::chrono::milliseconds>(core_.lease());
  bool sent = incarnation_.link().Send(Heartbeat{std::max(lease, std::chrono::milliseconds(1))});
  // Not sent if the guardian has yet to read an earlier heartbeat: retry soon,
  // because that one may carry a shorter lease.
  beat_.Start(nodes_.node_timeout / (sent ? kBeatsPerTimeout : kTriesPerTimeout));
}

// Shows failures that waiting alone will not repair, each kind once. The link
// keeps trying, because another job may release the port.
void Membership::WarnOnce(const DialFailure& failure) {
  bool is_lasting = failure.kind >= DialFailureKind::kNotRankrun;
  if (!is_lasting || !warned_.insert(failure.kind).second) return;
  auto patience = nodes_.node_timeout;
  if (core_.phase() == MemberPhase::kJoining) {
    patience = nodes_.join_timeout;
    auto when_refused = MemberPolicy{}.refusal_timeout;
    if (IsRefusal(failure.kind)) patience = std::min(patience, when_refused);
  }
  callbacks_.say("rankrun: " + failure.ToString() + "; trying again for up to " +
                 FormatSeconds(patience) + "\n");
  if (failure.kind == DialFailureKind::kWrongSecret) {
    callbacks_.say(SecretAdvice(nodes_, failure.endpoint));
  }
}

// Sends another hello if the state has changed since MakeHello, which ran before
// the link was up.
void Membership::OnUp() {
  warned_.clear();
  finders_.clear();
  Hello now = core_.hello();
  now.addresses = last_hello_.addresses;
  if (!(now == last_hello_)) link_->Send(Encode(now));
  Carry(end_.OnLinkUp());
  client_questions_.OnLinkUp();
  SendQuestions();
  Step(LinkUp{});
}

std::string Membership::MakeHello() {
  last_hello_ = core_.hello();
  last_hello_.addresses = hosting_.OwnAddresses(link_->local_address());
  return Encode(last_hello_);
}

void Membership::OnMessage(std::string_view bytes) {
  auto message = DecodeCoordinatorMessage(bytes);
  if (message) {
    if (const auto* report = std::get_if<JobReport>(&*message)) OnJobReport(*report);
    if (const auto* verdict = std::get_if<Verdict>(&*message)) end_.OnVerdict(*verdict);
    auto pass_order = [this](const auto& m) {
      if constexpr (std::is_constructible_v<HealthOrder, decltype(m)>) OnHealthOrder(m);
    };
    std::visit(pass_order, *message);
    if (const auto* lost = std::get_if<NodeLost>(&*message)) callbacks_.on_node_lost(lost->text);
    if (const auto* relay = std::get_if<Relay>(&*message)) callbacks_.on_relay(*relay);
    OnClients(*message);
    Step(MessageFromCoordinator{std::move(*message)});
    return Carry(postponed_request_.OnMessage());
  }
  Step(UnreadableMessage{message.error().message});
}

void Membership::Request(const MemberEvent& event) {
  const bool is_joining = core_.phase() == MemberPhase::kJoining;
  Carry(postponed_request_.OnRequest(event, host_ != nullptr, is_joining, Now()));
}

void Membership::Carry(const std::optional<MemberEvent>& request) {
  if (request) Step(*request);
  auto deadline = postponed_request_.deadline();
  if (deadline) request_timer_.Start(*deadline - Now());
}

void Membership::Step(const MemberEvent& event) {
  if (end_.has_ended()) return;
  for (const MemberAction& action : core_.Step(event, Now())) {
    std::visit([this](const auto& a) { Act(a); }, action);
  }
  if (end_.has_ended()) return;
  tick_.Start(core_.deadline() - Now());
  Beat();
}

bool Membership::SendRelay(const Relay& relay) {
  if (!IsLinkUp()) return false;
  link_->Send(Encode(MemberMessage(relay)));
  return true;
}

void Membership::Act(const Send& action) {
  if (link_ != nullptr) link_->Send(Encode(action.message));
}

void Membership::Act(const StopWorkers& action) {
  Beat();  // renew the lease, which ends now if the coordinator is lost
  end_.OnStop(action);
  callbacks_.stop(action);
  Search(store_search_.OnStop());
}

void Membership::Act(const ReportSuccess& action) {
  end_.OnReportSuccess(action);
  callbacks_.report_success();
}

void Membership::Act(const MakeReady& action) {
  waits_.clear();
  round_ = action.round;
  end_.OnRound();
  uint16_t port = 0;
  if (round_.node_rank == 0) {
    auto opened = callbacks_.open_store();
    if (!opened) return FailToStart(opened.error().message, false);
    port = *opened;
  }
  auto own = InterfaceAddresses();
  if (!own) LogWarn(own.error().message);
  Ready ready{round_.round, port, own ? std::move(*own) : std::vector<std::string>{}};
  if (link_->peer_address()) ready.coordinator_address = link_->peer_address()->Host();
  loop_.Post([this, ready] { Step(ready); });
}

// `is_worth_a_restart`: the failed step has succeeded in an earlier attempt.
void Membership::FailToStart(const std::string& why, bool is_worth_a_restart) {
  Cause cause{.text = "node " + nodes_.node_name + ": " + why,
              .exit_code = kExitNoRendezvous,
              .is_fatal = !is_worth_a_restart,
              .consumes_restart = is_worth_a_restart};
  loop_.Post([this, cause] {
    Step(PartFailed{cause});
    Step(WorkersOver{false});
  });
}

void Membership::Act(const StartWorkers& action) {
  Search(store_search_.Begin(round_, action.start_round, ViewOfStore()));
}

SearchView Membership::ViewOfStore() const {
  return {core_.phase() == MemberPhase::kRunning, link_->local_address(), Now()};
}

void Membership::Search(const std::vector<StoreAction>& actions) {
  for (const StoreAction& action : actions) {
    std::visit([this](const auto& a) { Act(a); }, action);
  }
}

void Membership::Act(const DialStore& action) {
  dial_ =
      std::make_unique<ControlDial>(loop_, action.store, 0, kDialTimeout,
                                    [this](const DialResult& result) { OnStoreDialled(result); });
}

void Membership::OnStoreDialled(const DialResult& result) {
  const auto* failure = std::get_if<DialFailure>(&result);
  Search(failure != nullptr ? store_search_.OnFailed(failure->ToString())
                            : store_search_.OnConnected(ViewOfStore()));
}

void Membership::Act(const UseStore& action) {
  NodePlace place{.attempt = round_.attempt,
                  .node_rank = round_.node_rank,
                  .node_count = round_.node_count,
                  .first_rank = round_.first_rank,
                  .world_size = round_.world_size,
                  .master_addr = action.store.host,
                  .master_port = action.store.port};
  const auto of_coordinator = host_ != nullptr ? host_->route() : std::nullopt;
  if (auto route = hosting_.Route(of_coordinator, link_->local_address())) {
    if (auto interface = InterfaceOf(*route)) place.interface = *interface;
  }
  callbacks_.start(place);
}

void Membership::Act(const ShowRoll& action) {
  waits_ = action.text;
  callbacks_.say("rankrun: " + action.text + hosting_.LoopbackHint() + "\n");
}

}  // namespace rankrun::agent

#include "agent/nodes/coordinator_host.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "agent/coordination/hello.h"
#include "agent/coordination/store_allowlist.h"
#include "agent/nodes/admitted_users.h"
#include "agent/nodes/control_codec.h"
#include "agent/nodes/longest_stop.h"
#include "base/log.h"

namespace rankrun::agent {
namespace {

// Nodes may have other flags than this one.
constexpr std::chrono::milliseconds kMinStopBound = std::chrono::hours(1);

CoordinatorPolicy PolicyOf(const JobSpec& spec, uint64_t own_node) {
  const NodesSpec& nodes = *spec.nodes;
  return {.min_nodes = nodes.min,
          .max_nodes = nodes.max,
          .restart = {.max_restarts = spec.max_restarts, .first_pause = spec.restart_pause},
          .join_timeout = nodes.join_timeout,
          .last_call = nodes.last_call,
          .node_timeout = nodes.node_timeout,
          .finish_timeout = nodes.finish_timeout,
          .max_stop = std::max(kMinStopBound, 2 * LongestStop(spec)),
          .on_lost_node = nodes.on_lost_node,
          .replace_after = nodes.replace_after,
          .own_node = own_node,
          .keeps_own_node = nodes.shares_port};
}

// Other nodes need an address of each node. The core checks the numbers.
bool LacksAddress(const MemberMessage& message) {
  const auto* hello = std::get_if<Hello>(&message);
  return hello != nullptr && hello->addresses.empty();
}

// Only a secret that each node makes for itself differs by accident, so that no other node with
// the right one is to be expected.
size_t OthersWithOwnSecret(const NodesSpec& nodes) {
  return nodes.secret_is_own ? static_cast<size_t>(nodes.min - 1) : 0;
}

// On hosts, the user may copy the secret and start the other nodes again. Containers start with
// what they have.
Duration PatienceWithOthers(const NodesSpec& nodes) {
  bool are_containers = !nodes.secret_advice.empty();
  return std::chrono::seconds(are_containers ? 5 : 60);
}

std::string WrongSecretsText(const NodesSpec& nodes) {
  return "all other nodes were refused, because they do not have the secret of node " +
         nodes.node_name + ", which is from " + nodes.secret_origin +
         (nodes.secret_advice.empty() ? "; all nodes need the same file" : nodes.secret_advice);
}

void StartOrStop(Timer& timer, std::optional<TimePoint> deadline) {
  if (!deadline) return timer.Stop();
  timer.Start(*deadline - std::chrono::steady_clock::now());
}

}  // namespace

CoordinatorHost::CoordinatorHost(Loop& loop, const JobSpec& spec, uint64_t own_node,
                                 std::optional<CoordinatorRecord> earlier, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      is_store_strict_(spec.nodes->store_strict),
      own_node_(own_node),
      secret_refusals_(OthersWithOwnSecret(*spec.nodes), PatienceWithOthers(*spec.nodes)),
      wrong_secrets_(WrongSecretsText(*spec.nodes)),
      reports_(static_cast<size_t>(spec.nodes->max), earlier ? earlier->outcome.attempt : 0),
      health_({.notice = spec.hang_notice, .timeout = spec.hang_timeout}),
      core_(PolicyOf(spec, own_node), std::move(earlier), std::chrono::steady_clock::now()),
      prober_(loop, spec.nodes->node_timeout,
              {.is_wanted = [this](uint64_t node) { return core_.Find(node) != nullptr; },
               .on_gone = [this](const NodeGone& gone) { Step(gone); }}),
      server_(
          loop,
          {.job_id = spec.run_id,
           .secret = spec.nodes->secret,
           .credential = spec.nodes->munge_credential,
           .admits_user = AdmittedUsers(spec)},
          {.on_hello =
               [this](PeerId peer, const std::string& hello, const SocketAddress& from,
                      const SocketAddress& local) {
                 if (!local.is_loopback()) route_ = local;
                 peers_[peer] = from;
                 was_used_ = true;
                 OnMessage(peer, hello);
               },
           .on_message = [this](PeerId peer, const std::string& bytes) { OnMessage(peer, bytes); },
           .on_lost = [this](PeerId peer, const Error&) { OnBroken(peer); },
           .on_wrong_secret = [this](const std::string& hello) { OnWrongSecret(hello); }}),
      tick_(loop, [this] { Step(Tick{}); }),
      merge_(loop, [this] { LookAtReports(); }),
      relay_timer_(loop, [this] { Pass(relay_.OnTick(std::chrono::steady_clock::now())); }),
      clients_(spec.nodes->node_timeout),
      clients_timer_(loop, [this] { Pass(clients_.OnTick(std::chrono::steady_clock::now())); }),
      stacks_timer_(loop, [this] { Order(health_.OnTick(std::chrono::steady_clock::now())); }),
      refusals_timer_(loop, [this] { Step(OthersRefused{wrong_secrets_}); }) {
  tick_.Start(Duration::zero());
}

void CoordinatorHost::OnMessage(PeerId peer, std::string_view bytes) {
  auto message = DecodeMemberMessage(bytes);
  if (message) RecordSender(peer, *message);
  if (message && LacksAddress(*message)) {
    message = Error{ErrorCode::kProtocol, "a hello without an address"};
  }
  if (message) {
    if (auto* prepared = std::get_if<Prepared>(&*message)) {
      auto checked = CheckAddresses(peer, *prepared);
      if (!checked) return Reject(peer, checked.error().message);
    }
    if (const auto* health = std::get_if<NodeHealth>(&*message)) OnHealth(peer, *health);
    if (const auto* stacks = std::get_if<NodeStacks>(&*message)) OnStacks(peer, *stacks);
    if (const auto* report = std::get_if<Report>(&*message)) OnReport(peer, *report);
    if (const auto* relay = std::get_if<Relay>(&*message)) {
      Pass(relay_.OnRelay(peer, *relay, std::chrono::steady_clock::now()));
    }
    OnClients(peer, *message);
    const auto* hello = std::get_if<Hello>(&*message);
    if (hello != nullptr) RepeatReport(peer, *hello);
    const auto node = hello == nullptr ? std::nullopt : std::optional(hello->node);
    if (auto watched = watched_.find(peer); watched != watched_.end()) {
      prober_.OnMessage(watched->second);
    }
    Step(MessageFromPeer{peer, std::move(*message)});
    return node ? Watch(peer, *node) : void();
  }
  LogWarn("a node sent a message that this version cannot read: " + message.error().message);
  Reject(peer, "this node's rankrun has another version");
}

void CoordinatorHost::Reject(PeerId peer, const std::string& why) {
  server_.Refuse(peer, Encode(Refusal{why}));
  Act(Announcement{std::nullopt, events::NodeRefused{NameOf(peer), why}});
  OnBroken(peer);
}

void CoordinatorHost::OnWrongSecret(const std::string& claimed_hello) {
  auto message = DecodeMemberMessage(claimed_hello);
  const auto* hello = message ? std::get_if<Hello>(&*message) : nullptr;
  if (hello == nullptr) return;
  secret_refusals_.OnRefused(hello->name, std::chrono::steady_clock::now());
  StartOrStop(refusals_timer_, secret_refusals_.deadline());
}

// Returns the address of a node whose hello could not be read.
std::string CoordinatorHost::NameOf(PeerId peer) const {
  const std::string name = relay_.NameOf(peer);
  const auto from = peers_.find(peer);
  if (name.empty() && from != peers_.end()) return from->second.Host();
  return name.substr(0, kMaxNameBytes);
}

void CoordinatorHost::OnBroken(PeerId peer) {
  auto watched = watched_.find(peer);
  const auto node = watched == watched_.end() ? std::nullopt : std::optional(watched->second);
  Forget(peer);
  Step(PeerLost{peer});
  if (node) prober_.OnBroken(*node);
}

// Watches a node that the core has let in as `peer`. It is dialled at the address from which
// it has connected.
void CoordinatorHost::Watch(PeerId peer, uint64_t id) {
  const CoordinatorNode* node = core_.Find(id);
  auto from = peers_.find(peer);
  const bool is_member = node != nullptr && node->peer == peer && from != peers_.end();
  const bool is_in = is_member && id != own_node_;
  if (is_member) Pass(clients_.Add(peer, id, node->hello.name));
  if (is_in) {
    secret_refusals_.OnJoined();
    refusals_timer_.Stop();
  }
  if (!is_in || !node->hello.liveness_port) return;
  watched_[peer] = id;
  prober_.OnHello(id, {from->second.Host(), *node->hello.liveness_port});
}

// Replaces the addresses from which a node may reach the store by those that can
// be right. Errors: kInvalid if the node is to be refused.
Result<void> CoordinatorHost::CheckAddresses(PeerId peer, Prepared& message) {
  auto found = peers_.find(peer);
  if (found == peers_.end()) return {};
  const SocketAddress& from = found->second;
  NodeAddresses relevant = RelevantAddresses(std::move(message.own_addresses), from,
                                             message.coordinator_address.value_or(""));
  message.own_addresses = std::move(relevant.addresses);
  if (relevant.problem.empty()) return {};
  std::string text = "the node at " + from.Host() + " " + relevant.problem;
  if (is_store_strict_) {
    return Error{ErrorCode::kInvalid, text + ", and --store-strict refuses such nodes"};
  }
  if (warned_of_.insert(from.Bytes()).second) {
    LogWarn(text + "; the store admits its workers from " + from.Host() + " only");
  }
  return {};
}

void CoordinatorHost::Step(const CoordinatorEvent& event) {
  auto now = std::chrono::steady_clock::now();
  for (const CoordinatorAction& action : core_.Step(event, now)) {
    std::visit([this](const auto& a) { Act(a); }, action);
  }
  tick_.Start(core_.deadline() - now);
  LookAtReports();
}

void CoordinatorHost::Act(const SendMessage& action) {
  if (const auto* start = std::get_if<StartRound>(&action.message)) {
    health_.BeginRound(start->round, std::chrono::steady_clock::now());
  }
  const auto* prepare = std::get_if<Prepare>(&action.message);
  if (prepare != nullptr && prepare->node_rank == 0) clients_.SetStore(action.peer);
  const auto* stop = std::get_if<Stop>(&action.message);
  if (stop != nullptr && stop->is_failure) reports_.Expect(action.peer);
  CoordinatorMessage message = action.message;
  if (auto* verdict = std::get_if<Verdict>(&message)) {
    verdict->report_follows = reports_.is_report_to_come();
  }
  server_.Send(action.peer, Encode(message));
}

void CoordinatorHost::Act(const HangUp& action) {
  Forget(action.peer);
  server_.Close(action.peer);
}

void CoordinatorHost::Act(const PersistRecord& action) { callbacks_.keep(action.record); }

void CoordinatorHost::Act(const Retire&) { callbacks_.on_retired(); }

void CoordinatorHost::Act(const Announcement& action) {
  const auto* refused = std::get_if<events::NodeRefused>(&action.decision);
  const auto now = std::chrono::steady_clock::now();
  const bool is_wanted = refused == nullptr || refusals_.Admits(*refused, now);
  if (is_wanted && callbacks_.on_decision) callbacks_.on_decision(action);
}

void CoordinatorHost::Forget(PeerId peer) {
  peers_.erase(peer);
  watched_.erase(peer);
  reports_.Forget(peer);
  health_.Forget(peer);
  Pass(relay_.Remove(peer));
  clients_.Remove(peer);
}

void CoordinatorHost::RecordSender(PeerId peer, const MemberMessage& message) {
  if (const auto* hello = std::get_if<Hello>(&message)) relay_.Add(peer, hello->name);
  if (std::holds_alternative<Failed>(message)) reports_.Expect(peer);
}

void CoordinatorHost::OnHealth(PeerId peer, const NodeHealth& health) {
  auto samples = DecodeHealth(health.samples);
  if (!samples) return LogWarn("a node sent samples: " + samples.error().message);
  auto now = std::chrono::steady_clock::now();
  Order(health_.OnSamples(peer, health.round, *std::move(samples), now));
  if (std::string text = health_.AwaitedEnd(now); !text.empty()) Step(AwaitedEndSeen{text});
}

void CoordinatorHost::OnStacks(PeerId peer, const NodeStacks& stacks) {
  auto digests = DecodeDigests(stacks.digests);
  if (!digests) return LogWarn("a node sent stacks: " + digests.error().message);
  Order(health_.OnStacks(peer, stacks.round, *digests));
}

void CoordinatorHost::Order(const std::vector<HealthOrder>& orders) {
  for (const HealthOrder& order : orders) {
    std::string message =
        std::visit([](const auto& m) { return Encode(CoordinatorMessage(m)); }, order);
    for (const auto& [to, address] : peers_) server_.Send(to, message);
  }
  StartOrStop(stacks_timer_, health_.deadline());
}

void CoordinatorHost::Pass(const QueryRelay::Messages& messages) {
  for (const auto& [to, relay] : messages) server_.Send(to, Encode(CoordinatorMessage(relay)));
  StartOrStop(relay_timer_, relay_.deadline());
}

void CoordinatorHost::OnClients(PeerId peer, const MemberMessage& message) {
  if (const auto* prepared = std::get_if<Prepared>(&message)) {
    clients_.KeepNodes([this](uint64_t node) { return core_.Find(node) != nullptr; });
    Pass(clients_.SetAddresses(peer, prepared->own_addresses));
  }
  if (const auto* question = std::get_if<WhoseClients>(&message)) {
    Pass(clients_.OnQuestion(peer, *question, std::chrono::steady_clock::now()));
  }
  if (const auto* answer = std::get_if<ClientVerdicts>(&message)) {
    Pass(clients_.OnVerdicts(peer, *answer));
  }
}

void CoordinatorHost::Pass(const ClientRelay::Messages& messages) {
  for (const auto& [to, message] : messages) {
    server_.Send(to,
                 std::visit([](const auto& m) { return Encode(CoordinatorMessage(m)); }, message));
  }
  StartOrStop(clients_timer_, clients_.deadline());
}

// A part that comes before any round was stopped is of another coordinator's job.
void CoordinatorHost::OnReport(PeerId peer, const Report& report) {
  const bool has_stopped = core_.phase() == JobPhase::kStopping || !core_.outcome().cause.empty();
  if (!has_stopped) return;
  auto sendings = reports_.OnPart(peer, report, DecidedOutcome(), std::chrono::steady_clock::now());
  if (!sendings) return LogWarn("a node sent " + sendings.error().message);
  SendReports(*sendings);
}

// Before the answer to the hello, which may be a verdict: the node that gets it hangs up.
void CoordinatorHost::RepeatReport(PeerId peer, const Hello& hello) {
  auto report = reports_.ReportFor(hello.attempts);
  if (report) server_.Send(peer, Encode(CoordinatorMessage(*std::move(report))));
}

void CoordinatorHost::LookAtReports() {
  SendReports(reports_.Look(DecidedOutcome(), std::chrono::steady_clock::now()));
}

void CoordinatorHost::SendReports(const std::vector<ReportMerger::Sending>& sendings) {
  for (const auto& [to, report, cause_node] : sendings) {
    std::string message = Encode(CoordinatorMessage(report));
    if (to) {
      server_.Send(*to, message);
      continue;
    }
    for (const auto& [peer, from] : peers_) server_.Send(peer, message);
    if (!cause_node.empty()) Step(CauseFound{report.attempt, cause_node});
  }
  StartOrStop(merge_, reports_.deadline());
}

std::optional<RoundOutcome> CoordinatorHost::DecidedOutcome() const {
  if (core_.phase() == JobPhase::kStopping) return std::nullopt;
  return core_.outcome();
}

}  // namespace rankrun::agent

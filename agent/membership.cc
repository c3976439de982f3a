#include "agent/membership.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "agent/control_codec.h"
#include "agent/exit_codes.h"
#include "base/format.h"
#include "base/log.h"
#include "base/network_interface.h"
#include "base/uv_loop.h"
#include "base/uv_stream.h"

namespace rankrun::agent {
namespace {

constexpr std::chrono::seconds kDialPatience{3};
constexpr std::chrono::milliseconds kDialPause{50};
// Heartbeats to the guardian in one node timeout.
constexpr int kBeatsPerTimeout = 6;
constexpr int kTriesPerTimeout = 100;

TimePoint Now() { return std::chrono::steady_clock::now(); }

bool IsLoopback(const std::string& host) {
  auto numeric = SocketAddress::FromNumeric(host, 0);
  return host == "localhost" || (numeric && numeric->is_loopback());
}

// Signals, then SIGKILL, and then the same with what the workers leave behind:
// who does not die of that is named in time.
int StopMs(const JobSpec& spec) {
  constexpr std::chrono::milliseconds kMost = std::chrono::hours(24 * 7);
  auto grace = std::min(kMost, std::max(spec.shutdown_timeout, spec.save_timeout));
  return static_cast<int>((grace + 2 * std::min(kMost / 4, spec.nodes->node_timeout)).count());
}

}  // namespace

Membership::Membership(Loop& loop, const JobSpec& spec, Incarnation& incarnation,
                       Callbacks callbacks)
    : loop_(loop),
      spec_(spec),
      nodes_(*spec.nodes),
      incarnation_(incarnation),
      callbacks_(std::move(callbacks)),
      core_({.join_timeout = nodes_.join_timeout, .node_timeout = nodes_.node_timeout}, About(),
            Now()),
      tick_(loop, [this] { Step(MemberTick{}); }),
      beat_(loop,
            [this] {
              Step(MemberTick{});
              Beat();
            }),
      next_dial_(loop, [this] { TryNextStore(); }),
      wish_patience_(loop, [this] { TellWish(); }),
      report_patience_(loop, [this] { HangUp(); }),
      end_timer_(loop, [this] {
        host_has_retired_ = true;
        MaybeEnd();
      }) {}

Hello Membership::About() const {
  return {.node = incarnation_.record().node_id,
          .incarnation = incarnation_.record().incarnation,
          .name = nodes_.node_name,
          .slots = spec_.workers,
          .min_nodes = nodes_.min,
          .max_nodes = nodes_.max,
          .node_rank = nodes_.node_rank,
          .node_index = nodes_.node_index,
          .stop_ms = StopMs(spec_)};
}

void Membership::Adopt(std::unique_ptr<Stream> stream, std::string_view first_bytes) {
  if (host_ != nullptr) host_->Adopt(std::move(stream), first_bytes);
}

void Membership::Begin() {
  JobRecord record = incarnation_.record();
  record.may_restart = true;
  incarnation_.Write(std::move(record));
  link_ = std::make_unique<ControlLink>(
      loop_,
      LinkOptions{.endpoints = nodes_.endpoints,
                  .job_id = spec_.run_id,
                  .secret = nodes_.secret,
                  .make_hello = [this] { return MakeHello(); }},
      ControlLink::Callbacks{.on_up = [this] { OnUp(); },
                             .on_message = [this](const std::string& bytes) { OnMessage(bytes); },
                             .on_down =
                                 [this](const Error& why) {
                                   was_down_ = true;
                                   Step(LinkDown{why.message});
                                 },
                             .on_failed =
                                 [this](const DialFailure& failure) {
                                   SayOnce(failure);
                                   TakeFreedPort(failure);
                                   Step(LinkDown{link_->Verdict(Now()), IsRefused()});
                                 }});
  FindHost();
  Step(MemberTick{});
}

// Silent for what is left of the lease, this agent is killed, and its workers
// with it: it counts from the last word that the coordinator answered.
void Membership::Beat() {
  auto lease = std::chrono::ceil<std::chrono::milliseconds>(core_.lease());
  bool sent = incarnation_.link().Send(Heartbeat{std::max(lease, std::chrono::milliseconds(1))});
  // What is to be read first may be a shorter lease.
  beat_.Start(nodes_.node_timeout / (sent ? kBeatsPerTimeout : kTriesPerTimeout));
}

// At some endpoint, when it was last dialled: all of them are ways to one coordinator.
bool Membership::IsRefused() const {
  return std::ranges::any_of(link_->failures(),
                             [](const DialFailure& failure) { return IsRefusal(failure.verdict); });
}

// What time alone will not mend; but another job may end there.
void Membership::SayOnce(const DialFailure& failure) {
  bool is_a_stranger = failure.verdict >= DialVerdict::kNotRankrun;
  if (!is_a_stranger || !said_.insert(failure.verdict).second) return;
  auto patience = nodes_.node_timeout;
  if (core_.phase() == MemberPhase::kJoining) {
    patience = nodes_.join_timeout;
    auto when_refused = MemberPolicy{}.refusal_timeout;
    if (IsRefusal(failure.verdict)) patience = std::min(patience, when_refused);
  }
  callbacks_.say("rankrun: " + failure.ToString() + "; trying again for up to " +
                 FormatSeconds(patience) + "\n");
}

// The hello was made before the link was up, and what happened in between is not
// in it: then it is said again.
void Membership::OnUp() {
  said_.clear();
  finders_.clear();
  Hello now = core_.hello();
  now.addresses = said_hello_.addresses;
  if (!(now == said_hello_)) link_->Send(Encode(now));
  Step(LinkUp{});
}

std::string Membership::MakeHello() {
  said_hello_ = core_.hello();
  said_hello_.addresses = OwnAddresses();
  return Encode(said_hello_);
}

// What the others are told of this node; what was typed stays as it is.
std::vector<std::string> Membership::OwnAddresses() const {
  if (!nodes_.local_addr.empty()) return {nodes_.local_addr};
  if (host_ != nullptr) return EndpointHosts();
  return {link_->local_address()->Host()};
}

void Membership::OnMessage(std::string_view bytes) {
  auto message = DecodeCoordinatorMessage(bytes);
  if (message) {
    if (const auto* report = std::get_if<JobReport>(&*message)) OnJobReport(*report);
    if (const auto* verdict = std::get_if<Verdict>(&*message)) AwaitReport(*verdict);
    if (const auto* lost = std::get_if<NodeLost>(&*message)) callbacks_.on_node_lost(lost->text);
    Step(CoordinatorSaid{std::move(*message)});
    return TellWish();
  }
  Step(CoordinatorSaid{
      Refusal{"it sent what this version cannot read: " + message.error().message}});
}

// The coordinator here must hear of it before this process may end, since
// others may be there.
void Membership::Want(const MemberEvent& event) {
  if (host_ == nullptr || core_.phase() != MemberPhase::kJoining) return Step(event);
  if (wish_) return;
  wish_ = event;
  wish_patience_.Start(nodes_.node_timeout);
}

void Membership::TellWish() {
  if (auto wish = std::exchange(wish_, std::nullopt)) Step(*wish);
}

void Membership::Step(const MemberEvent& event) {
  if (end_) return;
  for (const MemberAction& action : core_.Step(event, Now())) {
    std::visit([this](const auto& a) { Act(a); }, action);
  }
  if (end_) return;
  tick_.Start(std::max(Duration::zero(), core_.deadline() - Now()));
  Beat();
}

void Membership::Act(const Send& action) {
  if (link_ != nullptr) link_->Send(Encode(action.message));
}

void Membership::Act(const StopWorkers& action) {
  Beat();  // the lease was until now, when the coordinator is lost
  callbacks_.stop(action);
  if (is_dialling_) next_dial_.Start(Duration::zero());  // it finds that nothing is to start
}

void Membership::Act(const MakeReady& action) {
  round_ = action.round;
  if (was_down_) owed_report_.reset();  // whoever was to send it is gone
  uint16_t port = 0;
  if (round_.node_rank == 0) {
    auto opened = callbacks_.open_store();
    if (!opened) return FailToStart(opened.error().message, false);
    port = *opened;
  }
  auto own = InterfaceAddresses();
  if (!own) LogWarn(own.error().message);
  Ready ready{round_.round, port, own ? std::move(*own) : std::vector<std::string>{}};
  loop_.Post([this, ready] { Step(ready); });
}

// What has been possible before is tried again.
void Membership::FailToStart(const std::string& why, bool is_worth_a_restart) {
  Cause cause{.text = "node " + nodes_.node_name + ": " + why,
              .exit_code = kExitNoRendezvous,
              .is_hopeless = !is_worth_a_restart,
              .charges_budget = is_worth_a_restart};
  loop_.Post([this, cause] {
    Step(PartFailed{cause});
    Step(WorkersOver{false});
  });
}

void Membership::Act(const StartWorkers& action) {
  go_ = action.go;
  untried_ = {go_.store_addresses.rbegin(), go_.store_addresses.rend()};
  dial_until_ = Now() + nodes_.node_timeout;
  has_dialled_ = false;
  store_failures_.clear();
  if (round_.node_rank == 0) {
    callbacks_.admit_only(go_.store_clients);
    return StartAt(go_.store_addresses.front());
  }
  is_dialling_ = true;
  TryNextStore();
}

// Which of its addresses reaches the store from here.
void Membership::TryNextStore() {
  dial_.reset();
  if (core_.phase() != MemberPhase::kRunning) return GiveUpDialling();
  if (untried_.empty()) return TryStoresAgain();
  const std::string address = untried_.back();
  bool is_elsewhere = link_->local_address() && !link_->local_address()->is_loopback();
  if (is_elsewhere && IsLoopback(address)) {
    untried_.pop_back();
    store_failures_ += address +
                       " is a loopback address, which other hosts cannot reach (--local-addr, or "
                       "another --rdzv-endpoint); ";
    return TryNextStore();
  }
  dial_ = std::make_unique<ControlDial>(
      loop_, Endpoint{address, go_.store_port}, 0, kDialPatience,
      [this](DialResult result) { OnStoreDialled(std::move(result)); });
}

// A look-up may fail once, and a host that is gone is found out in time.
void Membership::TryStoresAgain() {
  if (!has_dialled_ || Now() >= dial_until_) {
    is_dialling_ = false;
    return FailToStart("cannot reach the store of rank 0: " + store_failures_, round_.attempt > 0);
  }
  untried_ = {go_.store_addresses.rbegin(), go_.store_addresses.rend()};
  store_failures_.clear();
  next_dial_.Start(kDialPause);
}

void Membership::GiveUpDialling() {
  is_dialling_ = false;
  Step(WorkersOver{false});
}

void Membership::OnStoreDialled(DialResult result) {
  has_dialled_ = true;
  const std::string address = untried_.back();
  untried_.pop_back();
  if (const auto* failure = std::get_if<DialFailure>(&result)) {
    store_failures_ += failure->ToString() + "; ";
    next_dial_.Start(Duration::zero());  // a dial may not end inside its callback
    return;
  }
  if (core_.phase() != MemberPhase::kRunning) return GiveUpDialling();
  is_dialling_ = false;
  StartAt(address);
}

void Membership::StartAt(const std::string& address) {
  NodePlace place{.attempt = round_.attempt,
                  .node_rank = round_.node_rank,
                  .node_count = round_.node_count,
                  .first_rank = round_.first_rank,
                  .world_size = round_.world_size,
                  .master_addr = address,
                  .master_port = go_.store_port};
  // The coordinator's host may reach itself by another way than the others.
  const auto& route = host_ != nullptr ? host_->route() : link_->local_address();
  if (route) {
    if (auto interface = InterfaceOf(*route)) place.interface = *interface;
  }
  callbacks_.start(place);
}

void Membership::Act(const ShowRoll& action) {
  callbacks_.say("rankrun: " + action.text + WhyAlone() + "\n");
}

// With such an endpoint each host waits for itself.
std::string Membership::WhyAlone() const {
  const std::string& host = nodes_.endpoints[0].host;
  if (host_ == nullptr || !IsLoopback(host)) return "";
  return "; " + host + " (" + nodes_.endpoint_origin +
         ") is a loopback address: nodes on other hosts cannot come";
}

}  // namespace rankrun::agent

#include "agent/coordinator_host.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "agent/control_codec.h"
#include "base/log.h"

namespace rankrun::agent {
namespace {

CoordinatorPolicy PolicyOf(const JobSpec& spec, uint64_t own_node) {
  const NodesSpec& nodes = *spec.nodes;
  return {.min_nodes = nodes.min,
          .max_nodes = nodes.max,
          .restart = {.max_restarts = spec.max_restarts},
          .join_timeout = nodes.join_timeout,
          .last_call = nodes.last_call,
          .node_timeout = nodes.node_timeout,
          .finish_timeout = nodes.finish_timeout,
          .on_lost_node = nodes.on_lost_node,
          .own_node = own_node};
}

}  // namespace

CoordinatorHost::CoordinatorHost(Loop& loop, const JobSpec& spec, uint64_t own_node,
                                 std::optional<CoordinatorRecord> earlier, Callbacks callbacks)
    : callbacks_(std::move(callbacks)),
      core_(PolicyOf(spec, own_node), std::move(earlier), std::chrono::steady_clock::now()),
      server_(
          loop, {.job_id = spec.run_id, .secret = spec.nodes->secret},
          {.on_hello = [this](PeerId peer, const std::string& hello, const SocketAddress&,
                              const SocketAddress&) { OnMessage(peer, hello); },
           .on_message = [this](PeerId peer, const std::string& bytes) { OnMessage(peer, bytes); },
           .on_lost = [this](PeerId peer, const Error&) { Step(PeerLost{peer}); }}),
      tick_(loop, [this] { Step(Tick{}); }) {
  tick_.Start(Duration::zero());
}

void CoordinatorHost::OnMessage(PeerId peer, std::string_view bytes) {
  auto message = DecodeMemberMessage(bytes);
  if (message) return Step(PeerSaid{peer, std::move(*message)});
  LogWarn("a node sent what this version cannot read: " + message.error().message);
  server_.Refuse(peer, Encode(Refusal{"this node's rankrun has another version"}));
  Step(PeerLost{peer});
}

void CoordinatorHost::Step(const CoordinatorEvent& event) {
  auto now = std::chrono::steady_clock::now();
  for (const CoordinatorAction& action : core_.Step(event, now)) {
    std::visit([this](const auto& a) { Act(a); }, action);
  }
  tick_.Start(std::max(Duration::zero(), core_.deadline() - now));
}

void CoordinatorHost::Act(const Tell& action) { server_.Send(action.peer, Encode(action.message)); }

void CoordinatorHost::Act(const HangUp& action) { server_.Close(action.peer); }

void CoordinatorHost::Act(const Keep& action) { callbacks_.keep(action.record); }

void CoordinatorHost::Act(const Retire&) { callbacks_.on_retired(); }

}  // namespace rankrun::agent

#include <utility>

#include "agent/nodes/control_codec.h"
#include "agent/nodes/health_codec.h"
#include "agent/nodes/membership.h"

// The part of Membership for workers that wait for others.

namespace rankrun::agent {

void Membership::SendHealth(std::vector<WorkerSample> workers, std::vector<WaitingClient> clients) {
  if (link_ == nullptr || !link_->is_up()) return;
  NodeSamples samples{.world_size = round_.world_size,
                      .workers = std::move(workers),
                      .clients = std::move(clients)};
  link_->Send(Encode(NodeHealth{round_.round, EncodeHealth(samples)}));
}

void Membership::SendStacks(const std::vector<RankDigest>& digests) {
  if (link_ == nullptr || !link_->is_up()) return;
  link_->Send(Encode(NodeStacks{round_.round, EncodeDigests(digests)}));
}

// Orders of an earlier round mean other workers. The first node shows notices for all.
void Membership::OnHealthOrder(const HealthOrder& order) {
  const bool is_for_this_node = std::visit(
      [this](const auto& kind) {
        if constexpr (requires { kind.round; }) return kind.round == round_.round;
        return round_.node_rank == 0;
      },
      order);
  if (is_for_this_node) callbacks_.on_health_order(order);
}

}  // namespace rankrun::agent

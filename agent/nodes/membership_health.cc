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

// Orders of an earlier round mean other workers.
void Membership::OnHealthOrder(const HealthOrder& order) {
  const auto* wanted = std::get_if<HealthWanted>(&order);
  const auto* found = std::get_if<HangFound>(&order);
  if (wanted != nullptr && wanted->round != round_.round) return;
  const auto* stacks = std::get_if<StacksWanted>(&order);
  if (stacks != nullptr && stacks->round != round_.round) return;
  if (found != nullptr && found->round != round_.round) return;
  if (std::holds_alternative<HangNotice>(order) && round_.node_rank != 0) return;
  callbacks_.on_health_order(order);
}

}  // namespace rankrun::agent

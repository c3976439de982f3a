#include "agent/coordination/round_in_progress.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/coordination/store_allowlist.h"
#include "base/net/socket_address.h"
#include "base/roll_call.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxNamesInEvent = 64;  // of nodes
// Number of addresses that a node dials after those of the hello. Each may cost the time of a dial.
constexpr size_t kMaxFurtherAddresses = 8;

// Other hosts reach neither a loopback address nor a link-local one, which needs a scope.
bool IsForOtherHosts(const std::string& text) {
  auto address = SocketAddress::FromNumeric(text, 0);
  return address && !address->is_loopback() && !text.starts_with("fe80:");
}

}  // namespace

RoundInProgress::RoundInProgress(int number, std::vector<NodeAssignment> assignments,
                                 std::vector<std::string> store_addresses)
    : number_(number),
      assignments_(std::move(assignments)),
      prepare_{.round = number,
               .node_count = static_cast<int>(assignments_.size()),
               .world_size = WorldSizeOf(assignments_),
               .record = DigestOf(number, assignments_)},
      start_{.round = number, .store_addresses = std::move(store_addresses)} {
  for (size_t i = 0; i < assignments_.size(); ++i) {
    participants_[assignments_[i].node].node_rank = static_cast<int>(i);
  }
}

const NodeAssignment& RoundInProgress::AssignmentOf(uint64_t node) const {
  return assignments_[static_cast<size_t>(participants_.at(node).node_rank)];
}

std::string RoundInProgress::NameOf(uint64_t node) const {
  auto found = std::ranges::find(assignments_, node, &NodeAssignment::node);
  return found == assignments_.end() ? "" : found->name;
}

bool RoundInProgress::Remove(uint64_t node) {
  bool was_awaited = RecordAnswer(node);
  participants_.erase(node);
  return was_awaited;
}

void RoundInProgress::RemoveAll() {
  participants_.clear();
  awaited_ = 0;
}

void RoundInProgress::AwaitAll() {
  for (auto& [id, participant] : participants_) participant.is_awaited = true;
  awaited_ = static_cast<int>(participants_.size());
}

bool RoundInProgress::RecordAnswer(uint64_t node) {
  auto found = participants_.find(node);
  if (found == participants_.end() || !std::exchange(found->second.is_awaited, false)) return false;
  awaited_ -= 1;
  return true;
}

bool RoundInProgress::IsAwaited(uint64_t node) const {
  auto found = participants_.find(node);
  return found != participants_.end() && found->second.is_awaited;
}

void RoundInProgress::RecordPrepared(uint64_t node, const Prepared& message) {
  Participant& participant = participants_.at(node);
  participant.own_addresses = message.own_addresses;
  if (participant.node_rank != 0) return;
  start_.store_port = message.store_port;
  OfferFurtherAddresses(message.own_addresses);
}

// The addresses of the hello may lead to the port of the coordinator only, as those of a Kubernetes
// Service or of a forwarded port do.
void RoundInProgress::OfferFurtherAddresses(const std::vector<std::string>& own) {
  std::vector<std::string>& offered = start_.store_addresses;
  const size_t max = offered.size() + kMaxFurtherAddresses;
  for (const std::string& address : own) {
    if (offered.size() == max) return;
    bool is_known = std::ranges::find(offered, address) != offered.end();
    if (!is_known && IsForOtherHosts(address)) offered.push_back(address);
  }
}

void RoundInProgress::RecordUnfinished(uint64_t node, const std::vector<int>& local_ranks) {
  auto found = participants_.find(node);
  if (found != participants_.end()) found->second.unfinished = local_ranks;
}

Prepare RoundInProgress::PrepareFor(uint64_t node) const {
  Prepare message = prepare_;
  message.node_rank = participants_.at(node).node_rank;
  message.first_rank = AssignmentOf(node).first_rank;
  return message;
}

StartRound RoundInProgress::StartRoundFor(uint64_t node) const {
  StartRound message = start_;
  if (!IsStoreHost(node)) return message;
  std::vector<const std::vector<std::string>*> addresses;
  for (const auto& [id, participant] : participants_)
    addresses.push_back(&participant.own_addresses);
  message.store_allowlist = AddressesOfAll(addresses);
  return message;
}

events::RoundFormed RoundInProgress::AsEvent() const {
  events::RoundFormed event{.round = number_,
                            .world_size = prepare_.world_size,
                            .node_count = prepare_.node_count,
                            .nodes = {}};
  for (size_t i = 0; i < std::min(assignments_.size(), kMaxNamesInEvent); ++i) {
    event.nodes.push_back(assignments_[i].name);
  }
  return event;
}

// All ranks of a node whose answer is not awaited have finished.
std::vector<int> RoundInProgress::RanksOn(uint64_t node, bool are_finished) const {
  const NodeAssignment& assignment = AssignmentOf(node);
  const Participant& participant = participants_.at(node);
  const auto& unfinished = participant.unfinished;
  std::vector<int> ranks;
  for (int i = 0; i < assignment.slots; ++i) {
    const bool is_listed = !unfinished || std::ranges::count(*unfinished, i) > 0;
    const bool is_finished = !participant.is_awaited || !is_listed;
    if (is_finished == are_finished) ranks.push_back(assignment.first_rank + i);
  }
  return ranks;
}

std::string RoundInProgress::UnfinishedRanksOn(uint64_t node) const {
  const std::vector<int> ranks = RanksOn(node, false);
  const std::string& name = AssignmentOf(node).name;
  return ranks.empty() ? name : RanksInWords(ranks) + " on " + name;
}

std::string RoundInProgress::UnfinishedText() const {
  std::string text;
  std::vector<int> finished;
  size_t unfinished = 0;
  for (const auto& [id, participant] : participants_) {
    std::ranges::copy(RanksOn(id, true), std::back_inserter(finished));
    if (!participant.is_awaited) continue;
    unfinished += RanksOn(id, false).size();
    if (!text.empty()) text += ", ";
    text += UnfinishedRanksOn(id);
  }
  if (finished.empty() || unfinished == 0) return text;
  std::ranges::sort(finished);
  return text + "; nothing visible shows whether " + (unfinished == 1 ? "it waits" : "they wait") +
         " for " + RanksInWords(finished) + ", which ended with exit code 0";
}

}  // namespace rankrun::agent

#include "agent/nodes/client_relay.h"

#include <algorithm>
#include <span>

#include "base/format.h"

namespace rankrun::agent {
namespace {

using ToAskers = std::map<PeerId, ClientVerdicts>;

// A message has room for as many verdicts with reasons of this length as for clients.
constexpr size_t kMaxReasonBytes = 200;

// Appends the parts of `all` that fit into a message each.
template <typename Message, typename Entry>
void AppendTo(ClientRelay::Messages& messages, PeerId to, const std::vector<Entry>& all) {
  for (size_t i = 0; i < all.size(); i += WhoseClients::kMaxClients) {
    auto part = std::span(all).subspan(i);
    part = part.first(std::min(part.size(), WhoseClients::kMaxClients));
    messages.push_back({to, Message{{part.begin(), part.end()}}});
  }
}

ClientRelay::Messages MessagesOf(const std::map<PeerId, WhoseClients>& questions) {
  ClientRelay::Messages messages;
  for (const auto& [to, content] : questions) AppendTo<WhoseClients>(messages, to, content.clients);
  return messages;
}

ClientRelay::Messages MessagesOf(const ToAskers& answers) {
  ClientRelay::Messages messages;
  for (const auto& [to, content] : answers) {
    AppendTo<ClientVerdicts>(messages, to, content.verdicts);
  }
  return messages;
}

}  // namespace

ClientRelay::Messages ClientRelay::Add(PeerId peer, uint64_t id, const std::string& name) {
  Node& node = nodes_[id];
  if (node.peer) node_of_peer_.erase(*node.peer);
  node.name = name;
  node.peer = peer;
  node_of_peer_[peer] = id;
  ToNodes out;
  for (const auto& [number, question] : questions_) {
    if (question.open.contains(id)) Ask(number, question, id, out);
  }
  return MessagesOf(out);
}

void ClientRelay::SetAddresses(PeerId peer, const std::vector<std::string>& addresses) {
  auto found = node_of_peer_.find(peer);
  if (found == node_of_peer_.end()) return;
  const uint64_t id = found->second;
  ForgetAddresses(id);
  for (const std::string& text : addresses) {
    auto address = SocketAddress::FromNumeric(text, 0);
    if (!address) continue;
    nodes_[id].addresses.insert(address->Bytes());
    nodes_at_[address->Bytes()].insert(id);
  }
}

void ClientRelay::ForgetAddresses(uint64_t id) {
  for (const AddressBytes& address : nodes_[id].addresses) {
    auto found = nodes_at_.find(address);
    found->second.erase(id);
    if (found->second.empty()) nodes_at_.erase(found);
  }
  nodes_[id].addresses.clear();
}

void ClientRelay::Remove(PeerId peer) {
  auto found = node_of_peer_.find(peer);
  if (found != node_of_peer_.end()) {
    nodes_[found->second].peer.reset();
    node_of_peer_.erase(found);
  }
  if (asked_by_.erase(peer) == 0) return;
  std::erase_if(questions_, [&](const auto& entry) { return entry.second.asker == peer; });
}

void ClientRelay::KeepNodes(const std::function<bool(uint64_t)>& is_in_job) {
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    if (node->second.peer || is_in_job(node->first)) {
      ++node;
      continue;
    }
    ForgetAddresses(node->first);
    node = nodes_.erase(node);
  }
}

ClientRelay::Messages ClientRelay::OnQuestion(PeerId from, const WhoseClients& question,
                                              TimePoint now) {
  ToNodes to_nodes;
  ClientVerdicts at_once;
  for (const StoreClient& client : question.clients) {
    std::set<uint64_t> nodes = NodesAt(client.address);
    const bool is_full = asked_by_.contains(from) && asked_by_[from] >= kMaxClientsOfNode;
    if (nodes.empty() || is_full) {
      const char* why = is_full ? "too many clients wait for an answer" : "no node has its address";
      at_once.verdicts.push_back({client.id, why});
      continue;
    }
    asked_by_[from] += 1;
    Question& added = questions_[++last_number_];
    added = {from, client, std::move(nodes), now + kTimeout};
    for (uint64_t node : added.open) Ask(last_number_, added, node, to_nodes);
  }
  Messages messages = MessagesOf(to_nodes);
  if (!at_once.verdicts.empty()) messages.push_back({from, std::move(at_once)});
  return messages;
}

std::set<uint64_t> ClientRelay::NodesAt(const std::string& text) const {
  auto address = SocketAddress::FromNumeric(text, 0);
  auto found = address ? nodes_at_.find(address->Bytes()) : nodes_at_.end();
  return found == nodes_at_.end() ? std::set<uint64_t>{} : found->second;
}

void ClientRelay::Ask(uint64_t number, const Question& question, uint64_t id, ToNodes& out) const {
  const Node& node = nodes_.at(id);
  if (!node.peer) return;  // Add asks it
  StoreClient client = question.client;
  client.id = number;
  out[*node.peer].clients.push_back(std::move(client));
}

// The first node that vouches for a client decides, the last one that does not.
ClientRelay::Messages ClientRelay::OnVerdicts(PeerId from, const ClientVerdicts& answer) {
  ToAskers out;
  auto sender = node_of_peer_.find(from);
  if (sender == node_of_peer_.end()) return {};
  for (const auto& [number, why] : answer.verdicts) {
    auto found = questions_.find(number);
    if (found == questions_.end() || found->second.open.erase(sender->second) == 0) continue;
    const Question& question = found->second;
    if (!why.empty() && !question.open.empty()) continue;
    std::string reason = why.empty() ? "" : "node " + nodes_[sender->second].name + ": " + why;
    reason.resize(std::min(reason.size(), kMaxReasonBytes));
    out[question.asker].verdicts.push_back({question.client.id, std::move(reason)});
    asked_by_[question.asker] -= 1;
    questions_.erase(found);
  }
  return MessagesOf(out);
}

ClientRelay::Messages ClientRelay::OnTick(TimePoint now) {
  ToAskers out;
  while (!questions_.empty() && questions_.begin()->second.deadline <= now) {
    const Question& question = questions_.begin()->second;
    std::string why =
        NamesOf(question.open) + " has not said within " + FormatSeconds(kTimeout) + " whose it is";
    why.resize(std::min(why.size(), kMaxReasonBytes));
    out[question.asker].verdicts.push_back({question.client.id, std::move(why)});
    asked_by_[question.asker] -= 1;
    questions_.erase(questions_.begin());
  }
  return MessagesOf(out);
}

std::string ClientRelay::NamesOf(const std::set<uint64_t>& nodes) const {
  std::string names;
  for (uint64_t id : nodes) {
    auto found = nodes_.find(id);
    if (found == nodes_.end()) continue;
    names += (names.empty() ? "node " : ", ") + found->second.name;
  }
  return names.empty() ? "a node that is lost" : names;
}

std::optional<TimePoint> ClientRelay::deadline() const {
  if (questions_.empty()) return std::nullopt;
  return questions_.begin()->second.deadline;
}

}  // namespace rankrun::agent

#include "agent/nodes/client_relay.h"

#include <sys/socket.h>

#include <algorithm>
#include <span>

#include "base/format.h"

namespace rankrun::agent {
namespace {

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

ClientRelay::Messages MessagesOf(const std::map<PeerId, ClientVerdicts>& answers) {
  ClientRelay::Messages messages;
  for (const auto& [to, content] : answers) {
    AppendTo<ClientVerdicts>(messages, to, content.verdicts);
  }
  return messages;
}

// Many nodes have the same loopback and link-local addresses, at which no other host reaches them.
bool IsForOtherHosts(const SocketAddress& address) {
  const AddressBytes bytes = address.Bytes();
  const bool is_link_local_v4 = address.family() == AF_INET && bytes[12] == 169 && bytes[13] == 254;
  const bool is_link_local_v6 = bytes[0] == 0xFE && (bytes[1] & 0xC0) == 0x80;
  return !address.is_loopback() && !is_link_local_v4 && !is_link_local_v6;
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

ClientRelay::Messages ClientRelay::SetAddresses(PeerId peer,
                                                const std::vector<std::string>& addresses) {
  auto found = node_of_peer_.find(peer);
  if (found == node_of_peer_.end()) return {};
  const uint64_t id = found->second;
  ForgetAddresses(id);
  nodes_[id].has_told = true;
  for (const std::string& text : addresses) {
    auto address = SocketAddress::FromNumeric(text, 0);
    if (!address || !IsForOtherHosts(*address)) continue;
    nodes_[id].addresses.insert(address->Bytes());
    nodes_at_[address->Bytes()].insert(id);
  }
  ToNodes out;
  for (auto& [number, question] : questions_) {
    if (!question.open.empty() || !NodesAt(question.client.address).contains(id)) continue;
    question.open.insert(id);
    Ask(number, question, id, out);
  }
  return MessagesOf(out);
}

void ClientRelay::SetStore(PeerId peer) {
  auto found = node_of_peer_.find(peer);
  if (found != node_of_peer_.end()) store_ = found->second;
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
    if (std::string why = ProblemOf(from, nodes); !why.empty()) {
      at_once.verdicts.push_back({client.id, std::move(why)});
      continue;
    }
    asked_by_[from] += 1;
    Question& added = questions_[++last_number_];
    added = {from, client, std::move(nodes), now + timeout_};
    for (uint64_t node : added.open) Ask(last_number_, added, node, to_nodes);
  }
  Messages messages = MessagesOf(to_nodes);
  if (!at_once.verdicts.empty()) messages.push_back({from, std::move(at_once)});
  return messages;
}

// Returns why no node is asked; empty: `nodes` are, or a node that has to tell its addresses first.
std::string ClientRelay::ProblemOf(PeerId from, const std::set<uint64_t>& nodes) const {
  auto asker = node_of_peer_.find(from);
  if (store_ && (asker == node_of_peer_.end() || asker->second != *store_)) {
    return "another node has the store of the round";
  }
  auto asked = asked_by_.find(from);
  if (asked != asked_by_.end() && asked->second >= kMaxClientsOfNode) {
    return "too many clients wait for an answer";
  }
  if (nodes.size() > kMaxNodesOfClient) {
    return std::to_string(nodes.size()) + " nodes have its address, more than the " +
           std::to_string(kMaxNodesOfClient) + " that would be asked";
  }
  const bool may_be_told = nodes.empty() && std::ranges::any_of(nodes_, [](const auto& entry) {
                             return entry.second.peer && !entry.second.has_told;
                           });
  return nodes.empty() && !may_be_told ? "no node has its address" : "";
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

// The first node that vouches for a client decides. If none does, the reason of one that knows the
// client's user counts.
ClientRelay::Messages ClientRelay::OnVerdicts(PeerId from, const ClientVerdicts& answer) {
  ToAskers out;
  auto sender = node_of_peer_.find(from);
  if (sender == node_of_peer_.end()) return {};
  for (const auto& [number, why, is_of_user] : answer.verdicts) {
    auto found = questions_.find(number);
    if (found == questions_.end() || found->second.open.erase(sender->second) == 0) continue;
    if (why.empty()) {
      Close(found, {}, out);
      continue;
    }
    ClientVerdict& refusal = found->second.refusal;
    if (refusal.why.empty() || (is_of_user && !refusal.is_of_user)) {
      refusal = {.why = "node " + nodes_[sender->second].name + ": " + why,
                 .is_of_user = is_of_user};
    }
    if (found->second.open.empty()) Close(found, refusal, out);
  }
  return MessagesOf(out);
}

void ClientRelay::Close(Questions::iterator question, ClientVerdict verdict, ToAskers& out) {
  const auto& [asker, client, open, deadline, refusal] = question->second;
  verdict.id = client.id;
  verdict.why.resize(std::min(verdict.why.size(), kMaxReasonBytes));
  out[asker].verdicts.push_back(std::move(verdict));
  asked_by_[asker] -= 1;
  questions_.erase(question);
}

ClientRelay::Messages ClientRelay::OnTick(TimePoint now) {
  ToAskers out;
  while (!questions_.empty() && questions_.begin()->second.deadline <= now) {
    Question& question = questions_.begin()->second;
    ClientVerdict verdict = std::move(question.refusal);
    if (!verdict.is_of_user) {
      verdict.why = question.open.empty() ? "no node has its address"
                                          : "no answer within " + FormatSeconds(timeout_) +
                                                " from " + NamesOf(question.open);
    }
    Close(questions_.begin(), std::move(verdict), out);
  }
  return MessagesOf(out);
}

// Returns "node a and 3 others".
std::string ClientRelay::NamesOf(const std::set<uint64_t>& nodes) const {
  auto first = nodes_.find(*nodes.begin());
  std::string text = first == nodes_.end() ? "a node that is lost" : "node " + first->second.name;
  if (nodes.size() == 1) return text;
  const size_t others = nodes.size() - 1;
  return text + " and " + std::to_string(others) + (others == 1 ? " other" : " others");
}

std::optional<TimePoint> ClientRelay::deadline() const {
  if (questions_.empty()) return std::nullopt;
  return questions_.begin()->second.deadline;
}

}  // namespace rankrun::agent

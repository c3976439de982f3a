#include "agent/nodes/client_questions.h"

#include <utility>

#include "agent/nodes/client_relay.h"
#include "base/format.h"

namespace rankrun::agent {

ClientQuestions::ClientQuestions(Duration node_timeout)
    : patience_(ClientRelay::TimeoutFor(node_timeout) + std::chrono::seconds(5)) {}

void ClientQuestions::Add(StoreClient client, TimePoint now) {
  const uint64_t id = client.id;
  waiting_[id] = {std::move(client), now + patience_};
  unsent_.push_back(id);
}

void ClientQuestions::OnLinkUp() {
  unsent_.clear();
  for (const auto& [id, waiting] : waiting_) unsent_.push_back(id);
}

std::vector<WhoseClients> ClientQuestions::Take() {
  std::vector<WhoseClients> questions;
  for (uint64_t id : std::exchange(unsent_, {})) {
    auto found = waiting_.find(id);
    if (found == waiting_.end()) continue;
    if (questions.empty() || questions.back().clients.size() == WhoseClients::kMaxClients) {
      questions.emplace_back();
    }
    questions.back().clients.push_back(found->second.client);
  }
  return questions;
}

std::vector<ClientVerdict> ClientQuestions::OnVerdicts(const ClientVerdicts& answer) {
  std::vector<ClientVerdict> known;
  for (const ClientVerdict& verdict : answer.verdicts) {
    if (waiting_.erase(verdict.id) > 0) known.push_back(verdict);
  }
  return known;
}

std::vector<ClientVerdict> ClientQuestions::OnTick(TimePoint now) {
  std::vector<ClientVerdict> late;
  while (!waiting_.empty() && waiting_.begin()->second.deadline <= now) {
    late.push_back({waiting_.begin()->first, "the coordinator has not said within " +
                                                 FormatSeconds(patience_) + " whose it is"});
    waiting_.erase(waiting_.begin());
  }
  return late;
}

std::optional<TimePoint> ClientQuestions::deadline() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->second.deadline;
}

}  // namespace rankrun::agent

#include <utility>

#include "agent/nodes/control_codec.h"
#include "agent/nodes/membership.h"

// The part of Membership for clients of the store: their own node says whether they may use it.

namespace rankrun::agent {

// Many clients come in one turn of the loop, so that one message asks for all.
void Membership::AskWhose(StoreClient client) {
  client_questions_.Add(std::move(client), Now());
  clients_timer_.Start(Duration::zero());
}

void Membership::SendQuestions() {
  for (const ClientVerdict& late : client_questions_.OnTick(Now())) callbacks_.on_verdict(late);
  if (IsLinkUp()) {
    for (const WhoseClients& question : client_questions_.Take()) {
      link_->Send(Encode(MemberMessage(question)));
    }
  }
  if (auto deadline = client_questions_.deadline()) clients_timer_.Start(*deadline - Now());
}

void Membership::OnClients(const CoordinatorMessage& message) {
  if (const auto* question = std::get_if<WhoseClients>(&message)) {
    link_->Send(Encode(MemberMessage(callbacks_.judge_clients(*question))));
  }
  if (const auto* answer = std::get_if<ClientVerdicts>(&message)) {
    for (const auto& verdict : client_questions_.OnVerdicts(*answer)) {
      callbacks_.on_verdict(verdict);
    }
  }
}

}  // namespace rankrun::agent

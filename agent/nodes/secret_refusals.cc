#include "agent/nodes/secret_refusals.h"

namespace rankrun::agent {

void SecretRefusals::OnRefused(const std::string& node_name, TimePoint now) {
  if (nodes_.size() == others_) return;
  nodes_.insert(node_name);
  if (nodes_.size() == others_) deadline_ = now + patience_;
}

void SecretRefusals::OnJoined() {
  nodes_.clear();
  deadline_.reset();
}

}  // namespace rankrun::agent

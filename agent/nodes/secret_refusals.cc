#include "agent/nodes/secret_refusals.h"

namespace rankrun::agent {

void SecretRefusals::OnRefused(uint64_t node, TimePoint now) {
  if (nodes_.size() == others_) return;
  nodes_.insert(node);
  if (nodes_.size() == others_) deadline_ = now + patience_;
}

}  // namespace rankrun::agent

#include "agent/coordination/refusal_limit.h"

namespace rankrun::agent {

bool RefusalLimit::Admits(const events::NodeRefused& refusal, TimePoint now) {
  if (!begin_ || now - *begin_ >= kPeriod) {
    begin_ = now;
    written_.clear();
  }
  return written_.size() < kMaxEvents && written_.emplace(refusal.node, refusal.why).second;
}

}  // namespace rankrun::agent

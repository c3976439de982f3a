#include "comm/core/part_of.h"

namespace rankrun::comm {

constinit thread_local ProgramCall PartOf::current_ = ProgramCall::kNone;

PartOf::PartOf(ProgramCall call) : outer_(current_) {
  if (outer_ == ProgramCall::kNone) current_ = call;
}
PartOf::~PartOf() { current_ = outer_; }

}  // namespace rankrun::comm

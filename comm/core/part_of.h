#pragma once

#include "base/status/operation_names.h"

namespace rankrun::comm {

// Until the end of the scope, operations that this thread begins are parts of a call of the
// program, under whose name texts show them. The outermost scope counts.
class PartOf {
 public:
  explicit PartOf(ProgramCall call) : outer_(current_) {
    if (outer_ == ProgramCall::kNone) current_ = call;
  }
  PartOf(const PartOf&) = delete;
  PartOf& operator=(const PartOf&) = delete;
  ~PartOf() { current_ = outer_; }

  static ProgramCall OfThisThread() { return current_; }

 private:
  static inline constinit thread_local ProgramCall current_ = ProgramCall::kNone;

  const ProgramCall outer_;
};

}  // namespace rankrun::comm

#pragma once

#include "base/private_api.h"
#include "base/status/operation_names.h"

namespace rankrun::comm {

// Until the end of the scope, operations that this thread begins are parts of a call of the
// program, under whose name texts show them. The outermost scope counts.
class PartOf {
 public:
  RANKRUN_PRIVATE_API explicit PartOf(ProgramCall call);
  PartOf(const PartOf&) = delete;
  PartOf& operator=(const PartOf&) = delete;
  RANKRUN_PRIVATE_API ~PartOf();

  static ProgramCall OfThisThread() { return current_; }

 private:
  static constinit thread_local ProgramCall current_;

  const ProgramCall outer_;
};

}  // namespace rankrun::comm

#pragma once

#include "base/result.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Smallest and largest number of nodes of a job.
struct NodeRange {
  int min;
  int max;

  bool operator==(const NodeRange&) const = default;
};

// Reads --nnodes: "N" or "MIN:MAX". Pure. Errors: kInvalid, one line.
Result<NodeRange> ReadNodeRange(const Settings& settings);

}  // namespace rankrun::launcher

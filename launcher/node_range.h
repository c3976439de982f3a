#pragma once

#include "base/result.h"
#include "launcher/settings.h"

namespace rankrun::launcher {

struct NodeRange {
  int min;
  int max;

  bool operator==(const NodeRange&) const = default;
};

// Reads --nnodes: "N" or "MIN:MAX". Pure. Errors: kInvalid, one line.
Result<NodeRange> ReadNodeRange(const Settings& settings);

}  // namespace rankrun::launcher

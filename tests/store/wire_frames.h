#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/wire.h"

namespace rankrun::store {

// What a naive reader makes of all that one client has sent.
struct Frames {
  std::vector<std::string> requests;  // the bytes of each, in the current dialect
  bool broken = false;                // the next one breaks the protocol or a limit
  bool within_request = false;        // else: whether the next one has begun
  bool old_dialect = false;
};

Frames ReadFrames(std::string_view bytes, const WireLimits& limits);

}  // namespace rankrun::store

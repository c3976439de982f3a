#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/wire/wire.h"

namespace rankrun::store {

// Requests that a naive reader finds in all bytes of one client.
struct Frames {
  std::vector<std::string> requests;  // bytes of each request, in the current dialect
  bool broken = false;                // the next request violates the protocol or a limit
  bool within_request = false;        // otherwise: whether the next request has begun
  bool old_dialect = false;
};

Frames ReadFrames(std::string_view bytes, const WireLimits& limits);

}  // namespace rankrun::store

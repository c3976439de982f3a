#pragma once

#include <functional>

#include "base/result.h"
#include "comm/core/backend.h"

namespace rankrun::comm::stream {

// Collectives that an outside backend carries out itself, beside the connections.
// Thread: one at a time.
class OwnCollectives {
 public:
  virtual ~OwnCollectives() = default;

  // Returns whether it carries out such a call, alike on all ranks.
  virtual bool Takes(const Collective& collective, const Call& call) = 0;
  // Carries out a call that all ranks have made. Once `is_cancelled` returns true, it returns soon.
  // An error is that of the cancellation then, otherwise kSystem with the backend's reason.
  virtual Result<void> Run(const Collective& collective, const Call& call,
                           const std::function<bool()>& is_cancelled) = 0;
};

}  // namespace rankrun::comm::stream

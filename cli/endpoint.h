#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "launcher/settings/environment.h"

namespace rankrun::cli {

// The address of a store, with its origin.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
  std::string origin;  // "--store", "RANKRUN_STORE", "MASTER_ADDR and MASTER_PORT", "the default"

  std::string ToString() const;  // "127.0.0.1:29500", "[::1]:29500"
};

// Returns the address that `flag` (--store) gives, else RANKRUN_STORE, else
// MASTER_ADDR and MASTER_PORT (each with its default if only the other is set),
// else 127.0.0.1:29500. Pure.
// Errors: kInvalid; the message names the origin and the accepted form.
Result<Endpoint> FindStore(const std::optional<std::string>& flag,
                           const launcher::Environment& environment);

}  // namespace rankrun::cli

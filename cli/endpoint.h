#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace rankrun::cli {

// Where a store is, and who says so.
struct Endpoint {
  std::string host;
  uint16_t port = 0;
  std::string origin;  // "--store", "RANKRUN_STORE", "MASTER_ADDR and MASTER_PORT", "the default"

  std::string ToString() const;  // "127.0.0.1:29500", "[::1]:29500"
};

// A variable of the environment, or nothing if it is unset or empty.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

// The store that `flag` (--store) names, else RANKRUN_STORE, else MASTER_ADDR
// and MASTER_PORT (each with its default if the other one is set), else
// 127.0.0.1:29500. Pure.
// Errors: kInvalid, naming who says it and what would be right.
Result<Endpoint> FindStore(const std::optional<std::string>& flag, const Environment& environment);

}  // namespace rankrun::cli

#pragma once

#include <memory>

#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/stream/backend.h"

namespace rankrun::comm::tcp {

// Connects this rank to all others by TCP connections of our own.
// Errors: as ConnectAll.
Result<std::unique_ptr<stream::StreamBackend>> CreateStreamBackend(const BackendConfig& config);

// The same, as the creator of the backend "tcp".
Result<std::unique_ptr<Backend>> CreateBackend(const BackendConfig& config);

}  // namespace rankrun::comm::tcp

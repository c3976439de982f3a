#pragma once

#include <gloo/transport/device.h>

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "comm/core/backend.h"

namespace rankrun::comm::gloo {

using GlooDevice = std::shared_ptr<::gloo::transport::Device>;  // shared with Gloo's context

// Returns the number of interfaces that `config` names; 0: listen at the host
// name.
uint32_t InterfacesOf(const BackendConfig& config);

// Opens a listening socket and starts its thread. A Gloo context has one
// device, so only the first of several interfaces is used. Error: kSystem.
Result<GlooDevice> MakeDevice(const BackendConfig& config);

}  // namespace rankrun::comm::gloo

#pragma once

#include <gloo/transport/device.h>

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "comm/backend.h"

namespace rankrun::comm {

using GlooDevice = std::shared_ptr<::gloo::transport::Device>;  // shared with Gloo's context

// How many `config` names; 0: the host's name says where to listen.
uint32_t InterfacesOf(const BackendConfig& config);

// Listens, with a thread of its own. A Gloo context has one device, so of several
// interfaces the first is used. Error: kSystem.
Result<GlooDevice> MakeDevice(const BackendConfig& config);

}  // namespace rankrun::comm

#pragma once

#include <string>

#include <rankrun/rpc.h>

#include "comm/cpp/rpc/device_data.h"
#include "comm/cpp/rpc/running.h"

// References to values of other workers. They travel behind the bytes of a payload:
//
//   for each: owner, creator and number of the value; holder, issuer and number of the hold
//   their number (2 bytes)
//
// A worker that passes a reference on first makes the hold of the receiver at the owner, so
// that the value lives until the receiver lets go of it, however the messages race.
namespace rankrun::rpc {

// Returns the payload with its references and devices in its bytes. Waits for the owners of
// references. Throws the errors of RpcSync and SendDevices.
Payload Encode(Running& running, Payload payload, const Route& route);
// The reverse. Throws DistError for bytes that no Encode has made, and as ReceiveDevices.
Payload Decode(Running& running, Payload payload, int sender);

// Registers the methods by which workers hold values of each other.
void RegisterReferenceMethods();

}  // namespace rankrun::rpc

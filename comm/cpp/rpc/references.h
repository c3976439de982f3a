#pragma once

#include <string>

#include <rankrun/rpc.h>

#include "comm/cpp/rpc/running.h"

// References to values of other workers. They travel behind the bytes of a payload:
//
//   for each: owner, creator and number of the value; holder, issuer and number of the hold
//   their number (2 bytes)
//
// A worker that passes a reference on first makes the hold of the receiver at the owner, so
// that the value lives until the receiver lets go of it, however the messages race.
namespace rankrun::rpc {

// Returns the payload with its references in its bytes. Waits for their owners. Throws the
// errors of RpcSync.
Payload Encode(Running& running, Payload payload, int receiver);
// The reverse. Throws DistError for bytes that no Encode has made.
Payload Decode(Running& running, Payload payload);

// Registers the methods by which workers hold values of each other.
void RegisterReferenceMethods();

}  // namespace rankrun::rpc

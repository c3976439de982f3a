#pragma once

#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "comm/core/backend.h"

namespace rankrun::comm::tcp {

// Connections of this rank to one other rank. The sockets are non-blocking,
// close-on-exec, without Nagle's delay, and with keep-alives that report a lost
// host after 30 s. A socket may have data already: the peer may return from
// ConnectAll first.
struct PeerSockets {
  std::vector<Fd> data;  // streams of collectives, one per interface, same order on both ranks
  Fd control;            // stream of messages and farewells
};

// Connects this rank to all other ranks of the group, which must call it, too.
// Returns the sockets by group rank; those of this rank are empty. It succeeds
// on all ranks or fails on all, with the same first reason.
//
// Each rank listens at `config.host`, or at each interface that
// `config.network_interface` names (a list as in GLOO_SOCKET_IFNAME), and
// publishes its addresses with a random key. The higher of two ranks connects
// to the lower one. Both prove that they know the keys; comm/tcp/handshake.h
// has the proof. A stranger becomes no rank and keeps none out. The work and
// the descriptors per rank grow linearly with the number of ranks.
//
// comm/tcp/agreement.h has the keys in the store.
//
// Thread: any; it starts none.
// Errors: kTimeout with the ranks that are missing, do not connect or have not
// confirmed their connections; kInvalid for interfaces that differ in number or
// are too many; kPeerLost; kExhausted with the number of descriptors that the
// group needs; kSystem if a rank cannot listen or connect; kCancelled with the
// death message; kProtocol for an error of the store or another librankrun.
Result<std::vector<PeerSockets>> ConnectAll(const BackendConfig& config);

}  // namespace rankrun::comm::tcp

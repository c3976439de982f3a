#pragma once

#include <gloo/context.h>

#include <memory>

#include "base/result.h"
#include "comm/backend.h"
#include "comm/gloo/gloo_control.h"

namespace rankrun::comm {

// All ranks connected with each other.
struct Mesh {
  std::shared_ptr<::gloo::Context> context;  // shared with Gloo's buffers
  std::unique_ptr<Control> control;
};

// Connects to all other ranks, whose addresses are exchanged through the store.
// Gloo takes whoever connects to a pair's port for the peer. So each rank shows
// each peer a secret from the store when the mesh is up; if that fails for one,
// all ranks build the mesh again.
//
//   <prefix>/mesh_<n>/<rank>    secret, number of interfaces, addresses; or
//                               "refused: " and why it cannot connect
//   <prefix>/mesh_<n>/good      how many ranks have heard from all
//   <prefix>/mesh_<n>/good/<rank>   that this one has
//   <prefix>/mesh_<n>/verdict   "good", or why not, by who was first; "over: "
//                               and why when another mesh would be no better
//
// Errors: kInvalid when ranks have different numbers of interfaces; kTimeout,
// naming the ranks that have not come, or not heard from all; kPeerLost when no
// mesh was good, or a rank was lost that all others had heard from; kSystem when
// this rank or another cannot listen; kCancelled; kProtocol for an error of the store.
// Source: the address exchange follows gloo/rendezvous/context.cc.
Result<Mesh> BuildMesh(const BackendConfig& config);

}  // namespace rankrun::comm

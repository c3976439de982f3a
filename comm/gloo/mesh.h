#pragma once

#include <gloo/context.h>

#include <memory>

#include "base/result.h"
#include "comm/core/backend.h"
#include "comm/gloo/control.h"

namespace rankrun::comm::gloo {

// Connections of this rank to all other ranks.
struct Mesh {
  std::shared_ptr<::gloo::Context> context;  // shared with Gloo's buffers
  std::unique_ptr<Control> control;
};

// Connects this rank to all other ranks. The ranks exchange addresses through
// the store. Gloo accepts any process that connects to a pair's port as the
// peer. So, once connected, each rank sends each peer a secret that it has
// published in the store. If a secret is missing or wrong on any rank, all
// ranks build the mesh again.
//
//   <prefix>/mesh_<n>/<rank>    secret, number of interfaces, addresses; or
//                               "refused: " and why the rank cannot connect
//   <prefix>/mesh_<n>/good      number of ranks that have verified all secrets
//   <prefix>/mesh_<n>/good/<rank>   set when this rank has verified all secrets
//   <prefix>/mesh_<n>/verdict   "good", or the first complaint; with "over: " before
//                               it, no further mesh is attempted
//
// Errors: kInvalid if the numbers of interfaces differ between ranks; kTimeout
// with the ranks that are missing or have not verified all secrets; kPeerLost
// if all meshes failed, or a rank was lost after it had been verified; kSystem
// if a rank cannot listen; kCancelled; kProtocol for an error of the store.
// Source: the address exchange follows gloo/rendezvous/context.cc.
Result<Mesh> BuildMesh(const BackendConfig& config);

}  // namespace rankrun::comm::gloo

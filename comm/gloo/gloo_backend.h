#pragma once

#include <gloo/context.h>

#include <memory>

#include "base/result.h"
#include "comm/backend.h"
#include "comm/gloo/peer_names.h"

namespace rankrun::comm {

// Collectives by Gloo over TCP, CPU memory only. Owns one Gloo context: a
// socket per peer and one thread. No exception of Gloo's leaves it.
// Source: Gloo (github.com/facebookincubator/gloo), Debian's git20220518.
class GlooBackend final : public Backend {
 public:
  static Result<std::unique_ptr<Backend>> Create(const BackendConfig& config);

  Result<void> AllReduce(const Tensor& tensor, ReduceOp op, const Call& call) override;
  Result<void> Broadcast(const Tensor& tensor, int source, const Call& call) override;
  Result<void> Barrier(const Call& call) override;

 private:
  GlooBackend(std::shared_ptr<::gloo::Context> context, PeerNames names);

  const std::shared_ptr<::gloo::Context> context_;  // Gloo's options share it during a call
  PeerNames names_;
};

}  // namespace rankrun::comm

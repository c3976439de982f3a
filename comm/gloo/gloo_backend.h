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

  Result<void> AllReduce(std::byte* data, std::size_t count, const Reduction& reduction,
                         const Call& call) override;
  Result<void> Reduce(std::byte* output, const std::byte* input, std::size_t count,
                      const Reduction& reduction, const Call& call) override;
  Result<void> Broadcast(Block data, const Call& call) override;
  Result<void> AllGather(std::span<const Block> outputs, ConstBlock input,
                         const Call& call) override;
  Result<void> Gather(std::span<const Block> outputs, ConstBlock input, const Call& call) override;
  Result<void> Scatter(Block output, std::span<const ConstBlock> inputs, const Call& call) override;
  Result<void> ReduceScatter(Block output, std::span<const ConstBlock> inputs,
                             const Reduction& reduction, const Call& call) override;
  Result<void> AllToAll(std::span<const Block> outputs, std::span<const ConstBlock> inputs,
                        const Call& call) override;
  Result<void> Barrier(const Call& call) override;
  bool Refuse(const Call& call, const std::string& reason) override;
  void Abort(const std::string& reason) override;
  Result<std::unique_ptr<Transfer>> StartSend(ConstBlock data, int destination,
                                              const Envelope& envelope) override;
  Result<std::unique_ptr<Transfer>> StartRecv(Block data, std::optional<int> source,
                                              const Envelope& envelope) override;

 private:
  GlooBackend(std::shared_ptr<::gloo::Context> context, PeerNames names);

  std::shared_ptr<::gloo::Context> context_;  // Gloo's options share it during a call
  PeerNames names_;
};

}  // namespace rankrun::comm

#pragma once

#include <gloo/context.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/core/backend.h"
#include "comm/core/executor.h"
#include "comm/core/schedule.h"
#include "comm/gloo/collective_monitor.h"
#include "comm/gloo/control.h"

namespace rankrun::comm::gloo {

// Moves the blocks of collectives over Gloo's unbound buffers, in pieces, so that
// one piece is reduced while the next one arrives.
//
// Gloo's own collectives are not used. They abort the process when sizes
// differ, need all blocks contiguous, overwrite buffers (reduce), and lack
// reduce_scatter and uneven forms. They also wait on buffers of their own, so
// after a peer dies in the middle of a block they wait until the time-out.
// Thread: one at a time. Throws CollectiveAborted.
class GlooExchange final : public PairTransport {
 public:
  GlooExchange(std::shared_ptr<::gloo::Context> context, CollectiveMonitor& monitor)
      : context_(std::move(context)), monitor_(monitor) {}

  // Sets the slot of the exchanges that follow.
  void UseSlotOf(const Operation& operation);
  void UseSlot(uint64_t slot) { slot_ = slot; }

  Result<void> Exchange(const Outgoing* outgoing, const Incoming* incoming) override;

  // Compares the bytes that other ranks will send to this one with the bytes
  // that it expects, before data moves. Returns the first difference, if any.
  std::optional<std::string> CompareSizes(const Schedule& schedule, const Blocks& blocks,
                                          const Operation& operation,
                                          const std::vector<int>& global_ranks);

 private:
  // Data under way to or from one peer.
  struct Flow {
    std::unique_ptr<GlooBuffer> buffer;
    int peer;
    size_t pieces;
  };

  using StartPiece = std::function<void(GlooBuffer&, size_t offset, size_t bytes)>;
  Flow Start(const Block& block, int peer, const StartPiece& start);
  Flow StartSend(const Block& block, int peer, uint64_t slot);
  Flow StartRecv(const Block& block, int peer, uint64_t slot);
  void FinishSend(const Flow& flow);
  void FinishRecv(const Flow& flow);
  void FinishReceive(const Flow& flow, const Incoming& incoming);

  const std::shared_ptr<::gloo::Context> context_;
  CollectiveMonitor& monitor_;
  uint64_t slot_ = 0;
  std::vector<std::byte> staging_;  // received data that will be reduced
};

}  // namespace rankrun::comm::gloo

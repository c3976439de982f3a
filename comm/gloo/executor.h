#pragma once

#include <gloo/context.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/core/backend.h"
#include "comm/core/schedule.h"
#include "comm/gloo/collective_monitor.h"
#include "comm/gloo/control.h"

namespace rankrun::comm::gloo {

// Memory of one collective.
struct Blocks {
  std::vector<ConstBlock> inputs = {};
  std::vector<Block> outputs = {};
  size_t scratch_bytes = 0;                 // size of each scratch block
  std::optional<Reduction> reduction = {};  // for schedules that reduce
};

// Carries out schedules over Gloo's unbound buffers, in pieces, so that one
// piece is reduced while the next one arrives. 16-bit floats are rounded at
// every rank that a partial result passes. Supports the schedules of
// comm/core/schedule.h: parts of one block, received data as the first operand,
// and `to` other than `from`.
//
// Gloo's own collectives are not used. They abort the process when sizes
// differ, need all blocks contiguous, overwrite buffers (reduce), and lack
// reduce_scatter and uneven forms. They also wait on buffers of their own, so
// after a peer dies in the middle of a block they wait until the time-out.
// Thread: one at a time. Throws CollectiveAborted.
class Executor {
 public:
  Executor(std::shared_ptr<::gloo::Context> context, CollectiveMonitor& monitor)
      : context_(std::move(context)), monitor_(monitor) {}

  void Run(const Schedule& schedule, const Blocks& blocks, const Operation& operation);
  // As Run, on a slot chosen by the caller.
  void RunOn(uint64_t slot, const Schedule& schedule, const Blocks& blocks);

  // Compares the bytes that other ranks will send to this one with the bytes
  // that it expects, before data moves. Returns the first difference, if any.
  std::optional<std::string> CompareSizes(const Schedule& schedule, const Blocks& blocks,
                                          const Operation& operation,
                                          const std::vector<int>& global_ranks);

 private:
  struct Piece {
    std::byte* data;
    size_t bytes;
  };
  // Data under way to or from one peer.
  struct Flow {
    std::unique_ptr<GlooBuffer> buffer;
    int peer;
    size_t pieces;
  };

  Piece Find(const Part& part, const Blocks& blocks);
  void RunStep(const Step& step, const Blocks& blocks, uint64_t slot);
  using StartPiece = std::function<void(GlooBuffer&, size_t offset, size_t bytes)>;
  Flow Start(const Piece& piece, int peer, const StartPiece& start);
  Flow StartSend(const Piece& piece, int peer, uint64_t slot);
  Flow StartRecv(const Piece& piece, int peer, uint64_t slot);
  void FinishSend(const Flow& flow);
  void FinishRecv(const Flow& flow);
  void FinishReducing(const Flow& flow, const Step& step, const Blocks& blocks);

  const std::shared_ptr<::gloo::Context> context_;
  CollectiveMonitor& monitor_;
  std::map<int, std::vector<std::byte>> scratch_;  // of the call under way
  std::map<int, size_t> scratch_used_;
  std::vector<std::byte> staging_;  // received data that will be reduced
};

}  // namespace rankrun::comm::gloo

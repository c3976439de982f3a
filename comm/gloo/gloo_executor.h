#pragma once

#include <gloo/context.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/backend.h"
#include "comm/gloo/gloo_control.h"
#include "comm/gloo/gloo_watch.h"
#include "comm/schedule.h"

namespace rankrun::comm {

// The memory of one collective.
struct Blocks {
  std::vector<ConstBlock> inputs = {};
  std::vector<Block> outputs = {};
  std::size_t scratch_bytes = 0;            // of each scratch block
  std::optional<Reduction> reduction = {};  // with a schedule that reduces
};

// Carries out schedules over Gloo's unbound buffers, in pieces, so that what has
// come is reduced while the next is on its way. 16-bit floats are rounded at
// every rank that a part passes, as each sees one partial result and its own.
//
// None of Gloo's own collectives are used: they abort the process when sizes
// differ, want all blocks in one piece, write to others' buffers (reduce), lack
// reduce_scatter and uneven forms, and wait on buffers of their own, so that a
// peer that dies in the midst of a block leaves them there until the time-out.
// Thread: one at a time. Throws Ended.
class Executor {
 public:
  Executor(std::shared_ptr<::gloo::Context> context, Watch& watch)
      : context_(std::move(context)), watch_(watch) {}

  void Run(const Schedule& schedule, const Blocks& blocks, const Operation& operation);
  // The same, on a slot of the caller's.
  void RunOn(uint64_t slot, const Schedule& schedule, const Blocks& blocks);

  // Compares, before data moves, how much each rank means to send to another
  // with what that one expects. The first difference, if there is one.
  std::optional<std::string> CompareSizes(const Schedule& schedule, const Blocks& blocks,
                                          const Operation& operation,
                                          const std::vector<int>& global_ranks);

 private:
  struct Piece {
    std::byte* data;
    std::size_t bytes;
  };
  // What is under way to or from one peer.
  struct Flow {
    std::unique_ptr<GlooBuffer> buffer;
    int peer;
    std::size_t pieces;
  };

  Piece Find(const Part& part, const Blocks& blocks);
  void RunStep(const Step& step, const Blocks& blocks, uint64_t slot);
  using StartPiece = std::function<void(GlooBuffer&, std::size_t offset, std::size_t bytes)>;
  Flow Start(const Piece& piece, int peer, const StartPiece& start);
  Flow StartSend(const Piece& piece, int peer, uint64_t slot);
  Flow StartRecv(const Piece& piece, int peer, uint64_t slot);
  void FinishSend(const Flow& flow);
  void FinishRecv(const Flow& flow);
  void FinishReducing(const Flow& flow, const Step& step, const Blocks& blocks);

  const std::shared_ptr<::gloo::Context> context_;
  Watch& watch_;
  std::map<int, std::vector<std::byte>> scratch_;  // of the call under way
  std::map<int, std::size_t> scratch_used_;
  std::vector<std::byte> staging_;  // what is received, to be reduced
};

}  // namespace rankrun::comm

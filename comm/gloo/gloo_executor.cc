#include "comm/gloo/gloo_executor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/gloo/gloo_words.h"

namespace rankrun::comm {
namespace {

// A multiple of every element's size. Large enough that a message's own cost
// does not count, small enough for the cache.
constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::size_t PiecesOf(std::size_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

std::size_t PieceBytes(std::size_t bytes, std::size_t piece) {
  return std::min(kPieceBytes, bytes - piece * kPieceBytes);
}

// Calls that differ have different slots, up to chance, so what they send never
// meets: Gloo ends the process when lengths differ.
uint64_t SlotOfCall(SlotUse use, const Operation& operation) {
  return SlotOf(use, Fingerprint(operation) >> 8);
}

}  // namespace

void Executor::Run(const Schedule& schedule, const Blocks& blocks, const Operation& operation) {
  RunOn(SlotOfCall(SlotUse::kCollective, operation), schedule, blocks);
}

void Executor::RunOn(uint64_t slot, const Schedule& schedule, const Blocks& blocks) {
  for (const Step& step : schedule) RunStep(step, blocks, slot);
  scratch_.clear();
  staging_ = {};
}

Executor::Piece Executor::Find(const Part& part, const Blocks& blocks) {
  const auto index = static_cast<std::size_t>(part.index);
  switch (part.place) {
    case Part::Place::kInput: {
      const ConstBlock& block = blocks.inputs[index];
      return {const_cast<std::byte*>(block.data), block.bytes};  // only read
    }
    case Part::Place::kOutput:
      return {blocks.outputs[index].data, blocks.outputs[index].bytes};
    case Part::Place::kScratch: {
      auto& block = scratch_[part.index];
      if (block.empty()) block.resize(blocks.scratch_bytes);
      return {block.data(), scratch_used_[part.index]};
    }
  }
  __builtin_unreachable();
}

void Executor::RunStep(const Step& step, const Blocks& blocks, uint64_t slot) {
  if (step.with && step.to.place == Part::Place::kScratch) {
    scratch_used_[step.to.index] = Find(*step.with, blocks).bytes;
  }
  if (step.kind == Step::Kind::kCopy) {
    const Piece from = Find(step.from, blocks);
    const Piece to = Find(step.to, blocks);
    if (from.data != to.data && from.bytes > 0) std::memmove(to.data, from.data, from.bytes);
    return;
  }
  Flow sending{};
  Flow receiving{};
  if (step.receive_from != Step::kNobody) {
    Piece to = Find(step.to, blocks);
    if (step.with) {
      staging_.resize(std::max(staging_.size(), to.bytes));
      to.data = staging_.data();
    }
    receiving = StartRecv(to, step.receive_from, slot);
  }
  if (step.send_to != Step::kNobody) {
    sending = StartSend(Find(step.from, blocks), step.send_to, slot);
  }
  if (step.with) {
    FinishReducing(receiving, step, blocks);
  } else {
    FinishRecv(receiving);
  }
  FinishSend(sending);
}

Executor::Flow Executor::StartSend(const Piece& piece, int peer, uint64_t slot) {
  return Start(piece, peer, [&](GlooBuffer& buffer, std::size_t offset, std::size_t bytes) {
    buffer.send(peer, slot, offset, bytes);
  });
}

Executor::Flow Executor::StartRecv(const Piece& piece, int peer, uint64_t slot) {
  return Start(piece, peer, [&](GlooBuffer& buffer, std::size_t offset, std::size_t bytes) {
    buffer.recv(peer, slot, offset, bytes);
  });
}

Executor::Flow Executor::Start(const Piece& piece, int peer, const StartPiece& start) {
  Flow flow{context_->createUnboundBuffer(piece.data, piece.bytes), peer, PiecesOf(piece.bytes)};
  try {
    for (std::size_t i = 0; i < flow.pieces; ++i) {
      start(*flow.buffer, i * kPieceBytes, PieceBytes(piece.bytes, i));
    }
  } catch (const std::exception& exception) {
    watch_.Fail(peer, PlainWords(exception.what()));
  }
  return flow;
}

void Executor::FinishSend(const Flow& flow) {
  for (std::size_t i = 0; i < flow.pieces; ++i) watch_.AwaitSend(*flow.buffer, flow.peer);
}

void Executor::FinishRecv(const Flow& flow) {
  for (std::size_t i = 0; i < flow.pieces; ++i) watch_.AwaitRecv(*flow.buffer, flow.peer);
}

void Executor::FinishReducing(const Flow& flow, const Step& step, const Blocks& blocks) {
  const Piece to = Find(step.to, blocks);
  const Piece with = Find(*step.with, blocks);
  Reduction reduction = *blocks.reduction;
  if (!step.completes) reduction.divisor = 1;
  for (std::size_t i = 0; i < flow.pieces; ++i) {
    watch_.AwaitRecv(*flow.buffer, flow.peer);
    const std::size_t at = i * kPieceBytes;
    const std::array<const void*, 2> operands{staging_.data() + at, with.data + at};
    Reduce(reduction, to.data + at, operands, PieceBytes(with.bytes, i) / SizeOf(reduction.dtype));
  }
}

std::optional<std::string> Executor::CompareSizes(const Schedule& schedule, const Blocks& blocks,
                                                  const Operation& operation,
                                                  const std::vector<int>& global_ranks) {
  const uint64_t slot = SlotOfCall(SlotUse::kSizes, operation);
  std::vector<uint64_t> sizes(2 * schedule.size());  // of each step: sent, received
  std::vector<Flow> sends;
  std::vector<std::pair<Flow, std::size_t>> receives;
  const auto place = [&](std::size_t i) {
    return Piece{reinterpret_cast<std::byte*>(&sizes[i]), sizeof sizes[i]};
  };
  for (std::size_t i = 0; i < schedule.size(); ++i) {
    const Step& step = schedule[i];
    if (step.receive_from != Step::kNobody) {
      receives.emplace_back(StartRecv(place(2 * i + 1), step.receive_from, slot), i);
    }
    if (step.send_to == Step::kNobody) continue;
    sizes[2 * i] = Find(step.from, blocks).bytes;
    sends.push_back(StartSend(place(2 * i), step.send_to, slot));
  }
  std::optional<std::string> difference;
  for (const auto& [flow, i] : receives) {
    FinishRecv(flow);
    const std::size_t expected = Find(schedule[i].to, blocks).bytes;
    if (difference || sizes[2 * i + 1] == expected) continue;
    const auto name = [&](int rank) {
      return NameRanks({global_ranks[static_cast<std::size_t>(rank)]});
    };
    difference = name(flow.peer) + " sends " + std::to_string(sizes[2 * i + 1]) + " bytes to " +
                 name(context_->rank) + ", which expects " + std::to_string(expected);
  }
  for (const Flow& flow : sends) FinishSend(flow);
  return difference;
}

}  // namespace rankrun::comm

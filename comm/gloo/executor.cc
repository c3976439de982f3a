#include "comm/gloo/executor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/gloo/error_text.h"

namespace rankrun::comm::gloo {
namespace {

// Bytes per piece: a multiple of every element size, large enough to hide the
// cost of a message, and small enough for the cache.
constexpr size_t kPieceBytes = size_t{1} << 20;

size_t PiecesOf(size_t bytes) { return (bytes + kPieceBytes - 1) / kPieceBytes; }

size_t PieceBytes(size_t bytes, size_t piece) {
  return std::min(kPieceBytes, bytes - piece * kPieceBytes);
}

// Different calls use different slots (except for hash collisions), so their
// messages never match. Gloo ends the process if matching messages differ in
// length.
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
  auto index = static_cast<size_t>(part.index);
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
    Piece from = Find(step.from, blocks);
    Piece to = Find(step.to, blocks);
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
  return Start(piece, peer, [&](GlooBuffer& buffer, size_t offset, size_t bytes) {
    buffer.send(peer, slot, offset, bytes);
  });
}

Executor::Flow Executor::StartRecv(const Piece& piece, int peer, uint64_t slot) {
  return Start(piece, peer, [&](GlooBuffer& buffer, size_t offset, size_t bytes) {
    buffer.recv(peer, slot, offset, bytes);
  });
}

Executor::Flow Executor::Start(const Piece& piece, int peer, const StartPiece& start) {
  Flow flow{context_->createUnboundBuffer(piece.data, piece.bytes), peer, PiecesOf(piece.bytes)};
  try {
    for (size_t i = 0; i < flow.pieces; ++i) {
      start(*flow.buffer, i * kPieceBytes, PieceBytes(piece.bytes, i));
    }
  } catch (const std::exception& exception) {
    monitor_.Fail(peer, PlainText(exception.what()));
  }
  return flow;
}

void Executor::FinishSend(const Flow& flow) {
  for (size_t i = 0; i < flow.pieces; ++i) monitor_.AwaitSend(*flow.buffer, flow.peer);
}

void Executor::FinishRecv(const Flow& flow) {
  for (size_t i = 0; i < flow.pieces; ++i) monitor_.AwaitRecv(*flow.buffer, flow.peer);
}

void Executor::FinishReducing(const Flow& flow, const Step& step, const Blocks& blocks) {
  Piece to = Find(step.to, blocks);
  Piece with = Find(*step.with, blocks);
  Reduction reduction = *blocks.reduction;
  if (!step.completes) reduction.divisor = 1;
  for (size_t i = 0; i < flow.pieces; ++i) {
    monitor_.AwaitRecv(*flow.buffer, flow.peer);
    size_t at = i * kPieceBytes;
    const std::array<const void*, 2> operands{staging_.data() + at, with.data + at};
    Reduce(reduction, to.data + at, operands, PieceBytes(with.bytes, i) / SizeOf(reduction.dtype));
  }
}

std::optional<std::string> Executor::CompareSizes(const Schedule& schedule, const Blocks& blocks,
                                                  const Operation& operation,
                                                  const std::vector<int>& global_ranks) {
  uint64_t slot = SlotOfCall(SlotUse::kSizes, operation);
  std::vector<uint64_t> sizes(2 * schedule.size());  // per step: sent, received
  std::vector<Flow> sends;
  std::vector<std::pair<Flow, size_t>> receives;
  auto place = [&](size_t i) {
    return Piece{reinterpret_cast<std::byte*>(&sizes[i]), sizeof sizes[i]};
  };
  for (size_t i = 0; i < schedule.size(); ++i) {
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
    size_t expected = Find(schedule[i].to, blocks).bytes;
    if (difference || sizes[2 * i + 1] == expected) continue;
    auto name = [&](int rank) { return NameRanks({global_ranks[static_cast<size_t>(rank)]}); };
    difference = name(flow.peer) + " sends " + std::to_string(sizes[2 * i + 1]) + " bytes to " +
                 name(context_->rank) + ", which expects " + std::to_string(expected);
  }
  for (const Flow& flow : sends) FinishSend(flow);
  return difference;
}

}  // namespace rankrun::comm::gloo

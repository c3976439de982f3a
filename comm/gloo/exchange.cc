#include "comm/gloo/exchange.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/roll_call.h"
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

void GlooExchange::UseSlotOf(const Operation& operation) {
  slot_ = SlotOfCall(SlotUse::kCollective, operation);
}

Result<void> GlooExchange::Exchange(const Outgoing* outgoing, const Incoming* incoming) {
  Flow sending{};
  Flow receiving{};
  if (incoming != nullptr) {
    Block to = incoming->data;
    if (incoming->reducer) {
      staging_.resize(std::max(staging_.size(), to.bytes));
      to.data = staging_.data();
    }
    receiving = StartRecv(to, incoming->peer, slot_);
  }
  if (outgoing != nullptr) {
    std::byte* data = const_cast<std::byte*>(outgoing->data.data);  // only read
    sending = StartSend({data, outgoing->data.bytes}, outgoing->peer, slot_);
  }
  if (incoming == nullptr || !incoming->reduces_after_send) {
    if (incoming != nullptr) FinishReceive(receiving, *incoming);
    FinishSend(sending);
  } else {
    FinishSend(sending);
    FinishReceive(receiving, *incoming);
  }
  return {};
}

GlooExchange::Flow GlooExchange::StartSend(const Block& block, int peer, uint64_t slot) {
  return Start(block, peer, [&](GlooBuffer& buffer, size_t offset, size_t bytes) {
    buffer.send(peer, slot, offset, bytes);
  });
}

GlooExchange::Flow GlooExchange::StartRecv(const Block& block, int peer, uint64_t slot) {
  return Start(block, peer, [&](GlooBuffer& buffer, size_t offset, size_t bytes) {
    buffer.recv(peer, slot, offset, bytes);
  });
}

GlooExchange::Flow GlooExchange::Start(const Block& block, int peer, const StartPiece& start) {
  Flow flow{context_->createUnboundBuffer(block.data, block.bytes), peer, PiecesOf(block.bytes)};
  try {
    for (size_t i = 0; i < flow.pieces; ++i) {
      start(*flow.buffer, i * kPieceBytes, PieceBytes(block.bytes, i));
    }
  } catch (const std::exception& exception) {
    monitor_.Fail(peer, PlainText(exception.what()));
  }
  return flow;
}

void GlooExchange::FinishSend(const Flow& flow) {
  for (size_t i = 0; i < flow.pieces; ++i) monitor_.AwaitSend(*flow.buffer, flow.peer);
}

void GlooExchange::FinishRecv(const Flow& flow) {
  for (size_t i = 0; i < flow.pieces; ++i) monitor_.AwaitRecv(*flow.buffer, flow.peer);
}

void GlooExchange::FinishReceive(const Flow& flow, const Incoming& incoming) {
  if (!incoming.reducer) return FinishRecv(flow);
  for (size_t i = 0; i < flow.pieces; ++i) {
    monitor_.AwaitRecv(*flow.buffer, flow.peer);
    size_t at = i * kPieceBytes;
    incoming.reducer->Apply(staging_.data() + at, at, PieceBytes(incoming.data.bytes, i));
  }
}

std::optional<std::string> GlooExchange::CompareSizes(const Schedule& schedule,
                                                      const Blocks& blocks,
                                                      const Operation& operation,
                                                      const std::vector<int>& global_ranks) {
  uint64_t slot = SlotOfCall(SlotUse::kSizes, operation);
  std::vector<uint64_t> sizes(2 * schedule.size());  // per step: sent, received
  std::vector<Flow> sends;
  std::vector<std::pair<Flow, size_t>> receives;
  auto place = [&](size_t i) {
    return Block{reinterpret_cast<std::byte*>(&sizes[i]), sizeof sizes[i]};
  };
  for (size_t i = 0; i < schedule.size(); ++i) {
    const Step& step = schedule[i];
    if (step.receive_from != Step::kNobody) {
      receives.emplace_back(StartRecv(place(2 * i + 1), step.receive_from, slot), i);
    }
    if (step.send_to == Step::kNobody) continue;
    sizes[2 * i] = BlockOf(step.from, blocks).bytes;
    sends.push_back(StartSend(place(2 * i), step.send_to, slot));
  }
  std::optional<std::string> difference;
  for (const auto& [flow, i] : receives) {
    FinishRecv(flow);
    size_t expected = BlockOf(schedule[i].to, blocks).bytes;
    if (difference || sizes[2 * i + 1] == expected) continue;
    auto name = [&](int rank) { return RanksInWords({global_ranks[static_cast<size_t>(rank)]}); };
    difference = name(flow.peer) + " sends " + std::to_string(sizes[2 * i + 1]) + " bytes to " +
                 name(context_->rank) + ", which expects " + std::to_string(expected);
  }
  for (const Flow& flow : sends) FinishSend(flow);
  return difference;
}

}  // namespace rankrun::comm::gloo

#include "comm/core/executor.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace rankrun::comm {
namespace {

// Scratch memory that an executor keeps from call to call.
constexpr size_t kKeptScratchBytes = size_t{1} << 20;

}  // namespace

Block BlockOf(const Part& part, const Blocks& blocks) {
  auto index = static_cast<size_t>(part.index);
  auto end = index + static_cast<size_t>(part.count);
  bool is_input = part.place == Part::Place::kInput;
  // An input is only read.
  Block found{
      is_input ? const_cast<std::byte*>(blocks.inputs[index].data) : blocks.outputs[index].data, 0};
  for (size_t i = index; i < end; ++i) {
    found.bytes += is_input ? blocks.inputs[i].bytes : blocks.outputs[i].bytes;
  }
  return found;
}

void Reducer::Apply(const std::byte* received, size_t offset, size_t bytes) const {
  const std::byte* own = with + offset;
  const std::array<const void*, 2> operands{received_first ? received : own,
                                            received_first ? own : received};
  Reduce(reduction, to + offset, operands, bytes / SizeOf(reduction.dtype));
}

Result<void> Executor::Run(const Schedule& schedule, const Blocks& blocks) {
  auto scratch_blocks = static_cast<size_t>(ScratchBlocks(schedule));
  scratch_used_.assign(scratch_blocks, blocks.scratch_bytes);
  if (scratch_.size() < scratch_blocks * blocks.scratch_bytes) {
    scratch_.resize(scratch_blocks * blocks.scratch_bytes);
  }
  for (const Step& step : schedule) {
    if (auto ok = RunStep(step, blocks); !ok) return ok;
  }
  if (scratch_.size() > kKeptScratchBytes) scratch_ = {};
  return {};
}

Block Executor::Find(const Part& part, const Blocks& blocks) {
  if (part.place != Part::Place::kScratch) return BlockOf(part, blocks);
  auto index = static_cast<size_t>(part.index);
  auto count = static_cast<size_t>(part.count);
  return {scratch_.data() + index * blocks.scratch_bytes,
          count == 1 ? scratch_used_[index] : count * blocks.scratch_bytes};
}

Incoming Executor::IncomingOf(const Step& step, const Blocks& blocks) {
  Incoming incoming{.peer = step.receive_from, .data = Find(step.to, blocks)};
  if (!step.with) return incoming;
  Reduction reduction = *blocks.reduction;
  if (!step.completes) reduction.divisor = 1;
  incoming.reducer = Reducer{.reduction = reduction,
                             .to = incoming.data.data,
                             .with = Find(*step.with, blocks).data,
                             .received_first = step.received_first};
  incoming.reduces_after_send = step.send_to != Step::kNobody && step.from == step.to;
  return incoming;
}

Result<void> Executor::RunStep(const Step& step, const Blocks& blocks) {
  if (step.with && step.to.place == Part::Place::kScratch) {
    scratch_used_[static_cast<size_t>(step.to.index)] = Find(*step.with, blocks).bytes;
  }
  if (step.kind == Step::Kind::kCopy) {
    Block from = Find(step.from, blocks);
    Block to = Find(step.to, blocks);
    if (from.data != to.data && from.bytes > 0) std::memmove(to.data, from.data, from.bytes);
    return {};
  }
  std::optional<Outgoing> outgoing;
  std::optional<Incoming> incoming;
  if (step.receive_from != Step::kNobody) incoming = IncomingOf(step, blocks);
  if (step.send_to != Step::kNobody) {
    Block from = Find(step.from, blocks);
    outgoing = Outgoing{.peer = step.send_to, .data = {from.data, from.bytes}};
  }
  return transport_.Exchange(outgoing ? &*outgoing : nullptr, incoming ? &*incoming : nullptr);
}

}  // namespace rankrun::comm

#include <utility>

#include "comm/group/arguments.h"
#include "comm/group/group.h"
#include "comm/group/group_run.h"

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

// Returns 0 for equal sizes, otherwise an FNV-1a hash over the sizes.
uint64_t LayoutOf(const std::vector<ConstBlock>& blocks) {
  bool equal = true;
  uint64_t hash = 0xcbf29ce484222325;
  for (const ConstBlock& block : blocks) {
    equal = equal && block.bytes == blocks.front().bytes;
    hash = (hash ^ block.bytes) * 0x100000001b3;
  }
  return equal ? 0 : hash | 1;
}

size_t BytesOf(const std::vector<ConstBlock>& blocks) {
  size_t bytes = 0;
  for (const ConstBlock& block : blocks) bytes += block.bytes;
  return bytes;
}

size_t CountOf(std::span<const ConstTensor> tensors) {
  size_t count = 0;
  for (const ConstTensor& tensor : tensors) count += tensor.count;
  return count;
}

}  // namespace

Result<Work> Group::ReduceBlocks(const Tensor& output, std::vector<ConstBlock> inputs,
                                 const Reduction& reduction, ReduceOp op,
                                 const CallOptions& options) {
  Operation operation{.kind = Kind::kReduceScatter,
                      .dtype = output.dtype,
                      .op = op.kind,
                      .device = output.device.type,
                      .count = BytesOf(inputs) / SizeOf(output.dtype),
                      .layout = LayoutOf(inputs)};
  auto own = static_cast<size_t>(identity_.group_rank);
  size_t wanted = inputs[own].bytes / SizeOf(output.dtype);
  if (auto ok = CheckCount("output", output.count, "as this rank's input", wanted); !ok) {
    return Refuse(operation, ok.error(), options);
  }
  return RunOn(output.device, operation, options,
               {.outputs = BlockOf(output),
                .inputs = std::move(inputs),
                .reduction = reduction,
                .factor = op.factor});
}

Result<Work> Group::ReduceScatter(const Tensor& output, std::span<const ConstTensor> inputs,
                                  ReduceOp op, const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kReduceScatter);
  auto lowered = Lower(output.dtype, op, identity_.world_size());
  auto blocks = BlocksOf("inputs", inputs, output, identity_.world_size());
  if (auto ok = All({Fine(lowered), CheckTensor("output", output), Fine(blocks)}); !ok) {
    return Refuse({.kind = Kind::kReduceScatter,
                   .dtype = output.dtype,
                   .op = op.kind,
                   .device = output.device.type,
                   .count = CountOf(inputs)},
                  ok.error(), options);
  }
  return ReduceBlocks(output, *std::move(blocks), lowered->reduction, op, options);
}

Result<Work> Group::ReduceScatterFrom(const Tensor& output, const ConstTensor& input, ReduceOp op,
                                      const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kReduceScatter);
  auto lowered = Lower(output.dtype, op, identity_.world_size());
  auto parts = EqualParts("input", input, identity_.world_size());
  if (auto ok = All({Fine(lowered), CheckTensor("output", output), CheckTensor("input", input),
                     CheckLike("input", input, "the output", output), Fine(parts)});
      !ok) {
    return Refuse({.kind = Kind::kReduceScatter,
                   .dtype = output.dtype,
                   .op = op.kind,
                   .device = output.device.type,
                   .count = input.count},
                  ok.error(), options);
  }
  return ReduceBlocks(output, *std::move(parts), lowered->reduction, op, options);
}

Result<Work> Group::Exchange(const ConstTensor& like, std::vector<Block> outputs,
                             std::vector<ConstBlock> inputs, const CallOptions& options) {
  DType dtype = like.dtype;
  auto own = static_cast<size_t>(identity_.group_rank);
  Operation operation{.kind = Kind::kAllToAll,
                      .dtype = dtype,
                      .device = like.device.type,
                      .count = BytesOf(inputs) / SizeOf(dtype)};
  if (auto ok = CheckCount("this rank's output for itself", outputs[own].bytes / SizeOf(dtype),
                           "as its input for itself", inputs[own].bytes / SizeOf(dtype));
      !ok) {
    return Refuse(operation, ok.error(), options);
  }
  return RunOn(like.device, operation, options,
               {.outputs = std::move(outputs), .inputs = std::move(inputs)});
}

Result<Work> Group::AllToAll(std::span<const Tensor> outputs, std::span<const ConstTensor> inputs,
                             const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kAllToAll);
  ConstTensor like = inputs.empty() ? ConstTensor(nullptr, DType::kUInt8, 0) : inputs.front();
  auto to = BlocksOf("outputs", outputs, like, identity_.world_size());
  auto from = BlocksOf("inputs", inputs, like, identity_.world_size());
  if (auto ok = All({Fine(from), Fine(to)}); !ok) {
    return Refuse({.kind = Kind::kAllToAll,
                   .dtype = like.dtype,
                   .device = like.device.type,
                   .count = CountOf(inputs)},
                  ok.error(), options);
  }
  return Exchange(like, *std::move(to), *std::move(from), options);
}

Result<Work> Group::AllToAllSingle(const Tensor& output, const ConstTensor& input,
                                   std::span<const size_t> output_splits,
                                   std::span<const size_t> input_splits,
                                   const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kAllToAll);
  Operation refused{.kind = Kind::kAllToAll,
                    .dtype = input.dtype,
                    .device = input.device.type,
                    .count = input.count};
  if (auto ok = All({CheckTensor("output", output), CheckTensor("input", input),
                     CheckLike("output", output, "the input", input), CheckApart(output, input)});
      !ok) {
    return Refuse(refused, ok.error(), options);
  }
  auto from = PartsByRows("input", input, input_splits, identity_.world_size());
  auto to = PartsByRows("output", output, output_splits, identity_.world_size());
  if (auto ok = All({Fine(from), Fine(to)}); !ok) return Refuse(refused, ok.error(), options);
  return Exchange(input, Writable(*to), *std::move(from), options);
}

Result<Work> Group::Barrier(const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kBarrier);
  return RunOn({}, {.kind = Kind::kBarrier}, options, {});
}

}  // namespace rankrun::comm

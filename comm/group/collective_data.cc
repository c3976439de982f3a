#include "comm/group/collective_data.h"

#include <algorithm>
#include <cstddef>

namespace rankrun::comm {
namespace {

// Writes the blocks times `factor` to `memory`, one after the other.
std::vector<ConstBlock> ScaledBlocks(const Collective& collective, double factor,
                                     std::vector<std::byte>& memory) {
  size_t bytes = 0;
  for (const ConstBlock& block : collective.inputs) bytes += block.bytes;
  memory.resize(bytes);
  DType dtype = collective.reduction.dtype;
  std::vector<ConstBlock> scaled;
  std::byte* next = memory.data();
  for (const ConstBlock& block : collective.inputs) {
    Scale(dtype, next, block.data, factor, block.bytes / SizeOf(dtype));
    scaled.push_back({next, block.bytes});
    next += block.bytes;
  }
  return scaled;
}

[[gnu::noinline]] Result<void> RunScaled(Backend& backend, const Call& call, Collective collective,
                                         double factor) {
  std::vector<std::byte> memory;
  auto scaled = ScaledBlocks(collective, factor, memory);
  collective.inputs = scaled;
  if (collective.kind != Operation::Kind::kAllReduce) return backend.Run(collective, call);
  // If another rank refuses the call, the tensor must not change.
  const Block in_place{memory.data(), memory.size()};
  const Block output = std::exchange(collective.outputs, {&in_place, 1}).front();
  auto ok = backend.Run(collective, call);
  if (ok) std::copy(memory.begin(), memory.end(), output.data);
  return ok;
}

}  // namespace

Result<void> RunCollective(Backend& backend, const Call& call, const CollectiveData& data) {
  const Operation& operation = call.operation;
  const Collective collective{.kind = operation.kind,
                              .root = operation.root,
                              .outputs = data.outputs,
                              .inputs = data.inputs,
                              .reduction = data.reduction};
  bool is_scaled = operation.op == ReduceOp::kPremulSum && Reduces(operation.kind);
  if (is_scaled) [[unlikely]]
    return RunScaled(backend, call, collective, data.factor);
  return backend.Run(collective, call);
}

}  // namespace rankrun::comm

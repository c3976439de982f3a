#pragma once

#include <cstddef>
#include <span>

#include "comm/core/backend.h"

// Collectives of a backend by name, with `call`'s root.
namespace rankrun::comm {

inline Result<void> AllReduce(Backend& backend, std::byte* data, size_t count,
                              const Reduction& reduction, const Call& call) {
  size_t bytes = count * SizeOf(reduction.dtype);
  const Block output{data, bytes};
  const ConstBlock input{data, bytes};
  return backend.Run({.kind = Operation::Kind::kAllReduce,
                      .outputs = {&output, 1},
                      .inputs = {&input, 1},
                      .reduction = reduction},
                     call);
}

inline Result<void> Reduce(Backend& backend, std::byte* output, const std::byte* input,
                           size_t count, const Reduction& reduction, const Call& call) {
  size_t bytes = count * SizeOf(reduction.dtype);
  const Block to{output, bytes};
  const ConstBlock from{input, bytes};
  return backend.Run({.kind = Operation::Kind::kReduce,
                      .root = call.operation.root,
                      .outputs = {&to, 1},
                      .inputs = {&from, 1},
                      .reduction = reduction},
                     call);
}

inline Result<void> Broadcast(Backend& backend, Block data, const Call& call) {
  return backend.Run(
      {.kind = Operation::Kind::kBroadcast, .root = call.operation.root, .outputs = {&data, 1}},
      call);
}

inline Result<void> AllGather(Backend& backend, std::span<const Block> outputs, ConstBlock input,
                              const Call& call) {
  return backend.Run(
      {.kind = Operation::Kind::kAllGather, .outputs = outputs, .inputs = {&input, 1}}, call);
}

inline Result<void> Gather(Backend& backend, std::span<const Block> outputs, ConstBlock input,
                           const Call& call) {
  return backend.Run({.kind = Operation::Kind::kGather,
                      .root = call.operation.root,
                      .outputs = outputs,
                      .inputs = {&input, 1}},
                     call);
}

inline Result<void> Scatter(Backend& backend, Block output, std::span<const ConstBlock> inputs,
                            const Call& call) {
  return backend.Run({.kind = Operation::Kind::kScatter,
                      .root = call.operation.root,
                      .outputs = {&output, 1},
                      .inputs = inputs},
                     call);
}

inline Result<void> ReduceScatter(Backend& backend, Block output,
                                  std::span<const ConstBlock> inputs, const Reduction& reduction,
                                  const Call& call) {
  return backend.Run({.kind = Operation::Kind::kReduceScatter,
                      .outputs = {&output, 1},
                      .inputs = inputs,
                      .reduction = reduction},
                     call);
}

inline Result<void> AllToAll(Backend& backend, std::span<const Block> outputs,
                             std::span<const ConstBlock> inputs, const Call& call) {
  return backend.Run({.kind = Operation::Kind::kAllToAll, .outputs = outputs, .inputs = inputs},
                     call);
}

inline Result<void> Barrier(Backend& backend, const Call& call) {
  return backend.Run({.kind = Operation::Kind::kBarrier}, call);
}

}  // namespace rankrun::comm

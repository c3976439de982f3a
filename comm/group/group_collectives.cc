#include <utility>

#include "comm/group/arguments.h"
#include "comm/group/group.h"
#include "comm/group/group_run.h"

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

Operation OperationOf(Kind kind, const ConstTensor& tensor) {
  return {.kind = kind, .dtype = tensor.dtype, .device = tensor.device.type, .count = tensor.count};
}

Operation Reducing(Kind kind, const ConstTensor& tensor, ReduceOp op) {
  Operation operation = OperationOf(kind, tensor);
  operation.op = op.kind;
  return operation;
}

Error OnlyAtRoot(const char* name, int global_root) {
  return Error{ErrorCode::kInvalid, std::string(name) +
                                        " is not empty: want that on the root, rank " +
                                        std::to_string(global_root) + ", only"};
}

}  // namespace

Result<Work> Group::Refuse(const Operation& operation, Error reason, const CallOptions& options) {
  std::string text = reason.message;
  int rank = identity_.global_rank;
  CallOptions how;  // default time-out, because the given one may be the bad argument
  how.async = options.async;
  const auto refused =
      Run(operation, how, [this, text, rank](Backend& backend, const Call& call) -> Result<void> {
        // Other ranks may have enqueued the call already, which only an abort ends.
        bool may_go_on = devices_ == nullptr || call.operation.device == DeviceType::kCpu;
        if (backend.Refuse(call, text) && may_go_on) return {};
        return Error{ErrorCode::kSystem, "rank " + std::to_string(rank) + " refused " +
                                             Describe(call.operation) + ": " + text};
      });
  if (refused) static_cast<void>(refused->IsCompleted());  // dropped here, not by the program
  if (!refused && !broken_.is_set()) return Error(refused.error());
  if (!refused) reason.message += "; the process group is broken";
  return std::move(reason).In(PrefixOf(PartOf::OfThisThread()) + NameOf(operation.kind) + Place());
}

Result<Work> Group::UninvolvedWork(Kind kind) const {
  if (auto ok = Uninvolved(NameOf(kind)); !ok) return std::move(ok).error();
  return Work();
}

Result<Work> Group::RunOn(const Device& device, const Operation& operation,
                          const CallOptions& options, CollectiveData data) {
  if (device.type != DeviceType::kCpu) {
    return RunOnDevice(operation, options,
                       {.factor = data.factor,
                        .outputs = std::move(data.outputs).ToVector(),
                        .inputs = std::move(data.inputs).ToVector(),
                        .device = device.index});
  }
  return Run(operation, options, [data = std::move(data)](Backend& backend, const Call& call) {
    return RunCollective(backend, call, data);
  });
}

Result<Work> Group::AllReduce(const Tensor& tensor, ReduceOp op, const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kAllReduce);
  Operation operation = comm::Reducing(Kind::kAllReduce, tensor, op);
  auto lowered = Lower(tensor.dtype, op, identity_.world_size());
  if (!lowered) return Refuse(operation, lowered.error(), options);
  if (auto ok = CheckTensor("tensor", tensor); !ok) return Refuse(operation, ok.error(), options);
  return RunOn(tensor.device, operation, options,
               {.outputs = BlockOf(tensor),
                .inputs = BlockOf(ConstTensor(tensor)),
                .reduction = lowered->reduction,
                .factor = op.factor});
}

Result<Work> Group::Reduce(const Tensor& tensor, Peer root, ReduceOp op,
                           const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kReduce);
  Operation operation = comm::Reducing(Kind::kReduce, tensor, op);
  auto lowered = Lower(tensor.dtype, op, identity_.world_size());
  auto rank = GroupRankIn(identity_.global_ranks, root);
  if (auto ok = All({Fine(rank), Fine(lowered), CheckTensor("tensor", tensor)}); !ok) {
    return Refuse(operation, ok.error(), options);
  }
  SetRoot(operation, *rank);
  return RunOn(tensor.device, operation, options,
               {.outputs = BlockOf(tensor),
                .inputs = BlockOf(ConstTensor(tensor)),
                .reduction = lowered->reduction,
                .factor = op.factor});
}

Result<Work> Group::Broadcast(const Tensor& tensor, Peer root, const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kBroadcast);
  Operation operation = OperationOf(Kind::kBroadcast, tensor);
  auto rank = GroupRankIn(identity_.global_ranks, root);
  if (auto ok = All({Fine(rank), CheckTensor("tensor", tensor)}); !ok) {
    return Refuse(operation, ok.error(), options);
  }
  SetRoot(operation, *rank);
  return RunOn(tensor.device, operation, options, {.outputs = BlockOf(tensor)});
}

Result<Work> Group::AllGather(std::span<const Tensor> outputs, const ConstTensor& input,
                              const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kAllGather);
  Operation operation = OperationOf(Kind::kAllGather, input);
  auto blocks = BlocksOf("outputs", outputs, input, identity_.world_size());
  auto own = static_cast<size_t>(identity_.group_rank);
  if (auto ok = All({CheckTensor("input", input), Fine(blocks)}); !ok) {
    return Refuse(operation, ok.error(), options);
  }
  if (auto ok = CheckCount("this rank's output", outputs[own].count, "as the input", input.count);
      !ok) {
    return Refuse(operation, ok.error(), options);
  }
  return RunOn(input.device, operation, options,
               {.outputs = *std::move(blocks), .inputs = BlockOf(input)});
}

Result<Work> Group::AllGatherInto(const Tensor& output, const ConstTensor& input,
                                  const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kAllGather);
  Operation operation = OperationOf(Kind::kAllGather, input);
  size_t wanted = input.count * static_cast<size_t>(identity_.world_size());
  if (auto ok =
          All({CheckTensor("input", input), CheckTensor("output", output),
               CheckLike("output", output, "the input", input),
               CheckCount("output", output.count, "the input's times the world size", wanted)});
      !ok) {
    return Refuse(operation, ok.error(), options);
  }
  auto parts = EqualParts("output", output, identity_.world_size());
  return RunOn(input.device, operation, options,
               {.outputs = Writable(*parts), .inputs = BlockOf(input)});
}

Result<Work> Group::Gather(std::span<const Tensor> outputs, const ConstTensor& input, Peer root,
                           const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kGather);
  Operation operation = OperationOf(Kind::kGather, input);
  auto rank = GroupRankIn(identity_.global_ranks, root);
  if (auto ok = All({Fine(rank), CheckTensor("input", input)}); !ok) {
    return Refuse(operation, ok.error(), options);
  }
  SetRoot(operation, *rank);
  std::vector<Block> blocks;
  if (*rank == identity_.group_rank) {
    auto checked = BlocksOf("outputs", outputs, input, identity_.world_size());
    if (!checked) return Refuse(operation, checked.error(), options);
    blocks = *std::move(checked);
    auto own = static_cast<size_t>(*rank);
    if (auto ok = CheckCount("this rank's output", outputs[own].count, "as the input", input.count);
        !ok) {
      return Refuse(operation, ok.error(), options);
    }
  } else if (!outputs.empty()) {
    return Refuse(operation, OnlyAtRoot("outputs", operation.global_root), options);
  }
  return RunOn(input.device, operation, options,
               {.outputs = std::move(blocks), .inputs = BlockOf(input)});
}

Result<Work> Group::Scatter(const Tensor& output, std::span<const ConstTensor> inputs, Peer root,
                            const CallOptions& options) {
  const CallCount::Scope in_call(calls_);
  if (!is_member()) return UninvolvedWork(Kind::kScatter);
  Operation operation = OperationOf(Kind::kScatter, output);
  auto rank = GroupRankIn(identity_.global_ranks, root);
  if (auto ok = All({Fine(rank), CheckTensor("output", output)}); !ok) {
    return Refuse(operation, ok.error(), options);
  }
  SetRoot(operation, *rank);
  std::vector<ConstBlock> blocks;
  if (*rank == identity_.group_rank) {
    auto checked = BlocksOf("inputs", inputs, output, identity_.world_size());
    if (!checked) return Refuse(operation, checked.error(), options);
    blocks = *std::move(checked);
    auto own = static_cast<size_t>(*rank);
    if (auto ok = CheckCount("output", output.count, "as this rank's input", inputs[own].count);
        !ok) {
      return Refuse(operation, ok.error(), options);
    }
  } else if (!inputs.empty()) {
    return Refuse(operation, OnlyAtRoot("inputs", operation.global_root), options);
  }
  return RunOn(output.device, operation, options,
               {.outputs = BlockOf(output), .inputs = std::move(blocks)});
}

}  // namespace rankrun::comm

#include "comm/nccl/launch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "comm/core/transfers.h"
#include "comm/nccl/cuda.h"
#include "comm/nccl/nvidia.h"
#include "comm/nccl/types.h"

namespace rankrun::comm::nccl {
namespace {

using Kind = Operation::Kind;

template <typename BlockType>
bool AreOfOneSize(const std::vector<BlockType>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(),
                     [&](const BlockType& block) { return block.bytes == blocks.front().bytes; });
}

template <typename BlockType>
bool AreAdjacent(const std::vector<BlockType>& blocks) {
  for (size_t i = 1; i < blocks.size(); ++i) {
    if (blocks[i].data != blocks[i - 1].data + blocks[i - 1].bytes) return false;
  }
  return true;
}

// Memory of the GPU that is allocated and freed in the order of a stream. Without Free it
// is lost: after an error NCCL may still use it.
class StreamMemory {
 public:
  static Result<StreamMemory> Allocate(size_t bytes, cudaStream_t stream) {
    void* memory = nullptr;
    auto ok = Cuda(Nvidia().cudaMallocAsync(&memory, bytes, stream), "cudaMallocAsync");
    if (!ok) return ok.error();
    return StreamMemory(memory, stream);
  }

  Result<void> Free() { return Cuda(Nvidia().cudaFreeAsync(memory_, stream_), "cudaFreeAsync"); }
  std::byte* data() const { return static_cast<std::byte*>(memory_); }

 private:
  StreamMemory(void* memory, cudaStream_t stream) : memory_(memory), stream_(stream) {}

  void* memory_;
  cudaStream_t stream_;
};

// Launch of one call.
class Launcher {
 public:
  Launcher(const DeviceCall& call, const LaunchPlace& place)
      : call_(call), place_(place), root_(call.operation.root) {}

  Result<void> Run() {
    if (Reduces(call_.operation.kind)) return RunReduction();
    switch (call_.operation.kind) {
      case Kind::kBroadcast:
        return LaunchGroup([&](ncclComm_t comm) {
          const Block& data = call_.outputs.front();
          return Nvidia().ncclBroadcast(data.data, data.data, data.bytes, ncclUint8, root_, comm,
                                        place_.stream);
        });
      case Kind::kBarrier:
        return Meet();
      case Kind::kAllGather:
        return AreOfOneSize(call_.outputs) ? AllGatherEven() : AllGatherUneven();
      default:
        return Exchange();
    }
  }

 private:
  template <typename Calls>
  Result<void> LaunchGroup(Calls calls) {
    return place_.communicator.Launch(calls, place_.deadline);
  }

  Result<void> Copy(std::byte* to, const std::byte* from, size_t bytes) {
    if (to == from || bytes == 0) return {};
    return Cuda(Nvidia().cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, place_.stream),
                "cudaMemcpyAsync");
  }

  Result<void> RunReduction() {
    DType dtype = call_.operation.dtype;
    auto type = TypeToReduce(dtype);
    if (!type) return std::move(type).error();
    type_ = *type;
    if (call_.operation.op == ReduceOp::kPremulSum) {
      alignas(double) std::byte scalar[8];
      WriteScalar(call_.factor, dtype, scalar);
      return place_.communicator.WithPremulSum(scalar, type_.type, [&](ncclRedOp_t op) {
        op_ = op;
        return LaunchReduction();
      });
    }
    auto op = OperatorFor(call_.operation.op);
    if (!op) return std::move(op).error();
    op_ = *op;
    return LaunchReduction();
  }

  Result<void> LaunchReduction() {
    if (call_.operation.kind == Kind::kReduceScatter) {
      return AreOfOneSize(call_.inputs) ? ReduceScatterEven() : ReduceScatterUneven();
    }
    ConstBlock input = call_.inputs.front();
    Block output = call_.outputs.front();
    return LaunchGroup([&](ncclComm_t comm) {
      if (call_.operation.kind == Kind::kReduce) {
        return Nvidia().ncclReduce(input.data, output.data, Count(input.bytes), type_.type, op_,
                                   root_, comm, place_.stream);
      }
      return Nvidia().ncclAllReduce(input.data, output.data, Count(input.bytes), type_.type, op_,
                                    comm, place_.stream);
    });
  }

  // Number of elements as NCCL counts them.
  size_t Count(size_t bytes) const {
    return bytes / SizeOf(call_.operation.dtype) * type_.per_element;
  }

  Result<void> ReduceScatterEven() {
    ConstBlock first = call_.inputs.front();
    if (first.bytes == 0) return {};
    if (AreAdjacent(call_.inputs)) return ReduceScatterFrom(first.data);
    auto memory = StreamMemory::Allocate(first.bytes * call_.inputs.size(), place_.stream);
    if (!memory) return std::move(memory).error();
    for (size_t r = 0; r < call_.inputs.size(); ++r) {
      auto ok = Copy(memory->data() + r * first.bytes, call_.inputs[r].data, first.bytes);
      if (!ok) return ok;
    }
    if (auto ok = ReduceScatterFrom(memory->data()); !ok) return ok;
    return memory->Free();
  }

  Result<void> ReduceScatterFrom(const std::byte* inputs) {
    return LaunchGroup([&](ncclComm_t comm) {
      return Nvidia().ncclReduceScatter(inputs, call_.outputs.front().data,
                                        Count(call_.inputs.front().bytes), type_.type, op_, comm,
                                        place_.stream);
    });
  }

  Result<void> ReduceScatterUneven() {
    return LaunchGroup([&](ncclComm_t comm) {
      ncclResult_t status = ncclSuccess;
      for (size_t r = 0; r < call_.inputs.size() && GoesOn(status); ++r) {
        if (call_.inputs[r].bytes == 0) continue;
        status = Nvidia().ncclReduce(call_.inputs[r].data, call_.outputs.front().data,
                                     Count(call_.inputs[r].bytes), type_.type, op_,
                                     static_cast<int>(r), comm, place_.stream);
      }
      return status;
    });
  }

  Result<void> AllGatherEven() {
    Block first = call_.outputs.front();
    if (first.bytes == 0) return {};
    if (AreAdjacent(call_.outputs)) return AllGatherTo(first.data);
    auto memory = StreamMemory::Allocate(first.bytes * call_.outputs.size(), place_.stream);
    if (!memory) return std::move(memory).error();
    if (auto ok = AllGatherTo(memory->data()); !ok) return ok;
    for (size_t r = 0; r < call_.outputs.size(); ++r) {
      auto ok = Copy(call_.outputs[r].data, memory->data() + r * first.bytes, first.bytes);
      if (!ok) return ok;
    }
    return memory->Free();
  }

  Result<void> AllGatherTo(std::byte* outputs) {
    ConstBlock input = call_.inputs.front();
    return LaunchGroup([&](ncclComm_t comm) {
      return Nvidia().ncclAllGather(input.data, outputs, input.bytes, ncclUint8, comm,
                                    place_.stream);
    });
  }

  Result<void> AllGatherUneven() {
    return LaunchGroup([&](ncclComm_t comm) {
      ncclResult_t status = ncclSuccess;
      for (size_t r = 0; r < call_.outputs.size() && GoesOn(status); ++r) {
        const Block& output = call_.outputs[r];
        if (output.bytes == 0) continue;
        status = Nvidia().ncclBroadcast(call_.inputs.front().data, output.data, output.bytes,
                                        ncclUint8, static_cast<int>(r), comm, place_.stream);
      }
      return status;
    });
  }

  // An all-reduce of one byte without a meaning.
  Result<void> Meet() {
    auto memory = StreamMemory::Allocate(1, place_.stream);
    if (!memory) return std::move(memory).error();
    auto met = LaunchGroup([&](ncclComm_t comm) {
      return Nvidia().ncclAllReduce(memory->data(), memory->data(), 1, ncclUint8, ncclMax, comm,
                                    place_.stream);
    });
    return met ? memory->Free() : met;
  }

  // Gather, Scatter and AllToAll: messages between pairs of ranks.
  Result<void> Exchange() {
    Transfers all = TransfersOf(call_.data(), place_.rank, place_.world_size);
    auto own = static_cast<size_t>(place_.rank);
    auto ok = Copy(all.receives[own].data, all.sends[own].data, all.sends[own].bytes);
    if (!ok) return ok;
    all.sends[own].bytes = all.receives[own].bytes = 0;
    return LaunchGroup([&](ncclComm_t comm) {
      ncclResult_t status = ncclSuccess;
      for (int r = 0; r < place_.world_size && GoesOn(status); ++r) {
        const ConstBlock& send = all.sends[static_cast<size_t>(r)];
        const Block& receive = all.receives[static_cast<size_t>(r)];
        if (send.bytes > 0) {
          status = Nvidia().ncclSend(send.data, send.bytes, ncclUint8, r, comm, place_.stream);
        }
        if (receive.bytes > 0 && GoesOn(status)) {
          status =
              Nvidia().ncclRecv(receive.data, receive.bytes, ncclUint8, r, comm, place_.stream);
        }
      }
      return status;
    });
  }

  const DeviceCall& call_;
  const LaunchPlace& place_;
  const int root_;
  ReducedType type_{};
  ncclRedOp_t op_ = ncclSum;
};

}  // namespace

Result<void> CheckSupport(const DeviceCall& call) {
  if (!Reduces(call.operation.kind)) return {};
  auto type = TypeToReduce(call.operation.dtype);
  if (!type) return std::move(type).error();
  if (call.operation.op == ReduceOp::kPremulSum) return {};
  auto op = OperatorFor(call.operation.op);
  if (!op) return std::move(op).error();
  return {};
}

Result<void> Launch(const DeviceCall& call, const LaunchPlace& place) {
  return Launcher(call, place).Run();
}

}  // namespace rankrun::comm::nccl

// Collectives and messages of the fake NCCL.

#include <nccl.h>

#include <cstring>
#include <memory>
#include <utility>

#include "comm/reduce/reduction.h"
#include "tests/comm/reduce/naive_reduction.h"
#include "tests/nccl/fake_nccl/calls.h"

using rankrun::DType;
using rankrun::ReduceOp;
using rankrun::fake_cuda::Trace;
using rankrun::fake_nccl::Enqueue;
using rankrun::fake_nccl::Step;

namespace {

DType DTypeFor(ncclDataType_t type) {
  static constexpr DType kTypes[] = {
      DType::kInt8,   DType::kUInt8,   DType::kInt32,   DType::kUInt32,  DType::kInt64,
      DType::kUInt64, DType::kFloat16, DType::kFloat32, DType::kFloat64, DType::kBFloat16};
  return kTypes[type];
}

size_t BytesOf(size_t count, ncclDataType_t type) {
  return count * rankrun::SizeOf(DTypeFor(type));
}

const char* NameOf(ncclRedOp_t op) {
  static constexpr const char* kNames[] = {"sum", "prod", "max", "min", "avg"};
  return op < ncclNumOps ? kNames[op] : "premul_sum";
}

std::string Described(const char* function, size_t count, ncclDataType_t type) {
  return std::string(function) + " " + std::to_string(count) + " x " +
         rankrun::NameOf(DTypeFor(type));
}

const char* Chars(const void* data) { return static_cast<const char*>(data); }
char* Chars(void* data) { return static_cast<char*>(data); }

// Memory for the blocks of all ranks, of `bytes` each, and its addresses.
struct Blocks {
  Blocks(int ranks, size_t bytes_of_one)
      : memory(static_cast<size_t>(ranks) * bytes_of_one), bytes(bytes_of_one) {}

  char* At(int rank) { return memory.data() + static_cast<size_t>(rank) * bytes; }
  std::vector<const void*> All(int ranks) {
    std::vector<const void*> all;
    for (int rank = 0; rank < ranks; ++rank) all.push_back(At(rank));
    return all;
  }

  std::vector<char> memory;
  size_t bytes;
};

struct Reduced {
  ncclDataType_t type;
  ncclRedOp_t op;
  size_t count;  // of a block
};

// Writes one block to send.
void Prepare(ncclComm* comm, const Reduced& how, char* to, const char* from) {
  if (how.op < ncclNumOps) {
    std::memcpy(to, from, BytesOf(how.count, how.type));
    return;
  }
  double factor = comm->premul_factors[how.op - ncclNumOps];
  rankrun::comm::Scale(DTypeFor(how.type), to, from, factor, how.count);
}

// Reduces the blocks of all ranks.
void Reduce(ncclComm* comm, const Reduced& how, char* output, Blocks& blocks) {
  static constexpr ReduceOp::Kind kKinds[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMax,
                                              ReduceOp::kMin, ReduceOp::kSum};
  rankrun::comm::Reduction reduction{.dtype = DTypeFor(how.type),
                                     .op = how.op < ncclNumOps ? kKinds[how.op] : ReduceOp::kSum,
                                     .divisor = how.op == ncclAvg ? comm->size : 1};
  rankrun::comm::naive::NaiveReduce(reduction, reinterpret_cast<std::byte*>(output),
                                    blocks.All(comm->size), how.count);
}

// Sends a block of the input to each of `receivers`, and reduces the blocks that arrive
// to `output` if this rank is one of them. The one for rank r begins at r * `stride` bytes.
ncclResult_t EnqueueReduction(const void* input, void* output, size_t stride, const Reduced& how,
                              const std::vector<int>& receivers, ncclComm_t comm,
                              cudaStream_t stream) {
  const size_t bytes = BytesOf(how.count, how.type);
  auto leaving = std::make_shared<Blocks>(comm->size, bytes);   // by receiver
  auto arriving = std::make_shared<Blocks>(comm->size, bytes);  // by sender
  Step step{.comm = comm, .stream = stream};
  step.before = [=] {
    for (int r : receivers) {
      Prepare(comm, how, leaving->At(r), Chars(input) + static_cast<size_t>(r) * stride);
    }
  };
  bool receives = false;
  for (int r : receivers) {
    step.outs.push_back({r, leaving->At(r), bytes});
    receives = receives || r == comm->rank;
  }
  for (int r = 0; receives && r < comm->size; ++r) step.ins.push_back({r, arriving->At(r), bytes});
  step.then = [=] {
    if (receives) Reduce(comm, how, Chars(output), *arriving);
  };
  return Enqueue(std::move(step));
}

std::vector<int> AllRanks(ncclComm_t comm) {
  std::vector<int> all;
  for (int rank = 0; rank < comm->size; ++rank) all.push_back(rank);
  return all;
}

}  // namespace

FAKE_API ncclResult_t ncclAllReduce(const void* input, void* output, size_t count,
                                    ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                    cudaStream_t stream) {
  FAIL_IF_ASKED();
  Trace(Described(__func__, count, type) + ", " + NameOf(op));
  return EnqueueReduction(input, output, 0, {type, op, count}, AllRanks(comm), comm, stream);
}

FAKE_API ncclResult_t ncclReduce(const void* input, void* output, size_t count, ncclDataType_t type,
                                 ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  FAIL_IF_ASKED();
  Trace(Described(__func__, count, type) + ", " + NameOf(op) + " to " + std::to_string(root));
  return EnqueueReduction(input, output, 0, {type, op, count}, {root}, comm, stream);
}

FAKE_API ncclResult_t ncclReduceScatter(const void* input, void* output, size_t count,
                                        ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                        cudaStream_t stream) {
  FAIL_IF_ASKED();
  Trace(Described(__func__, count, type) + ", " + NameOf(op));
  return EnqueueReduction(input, output, BytesOf(count, type), {type, op, count}, AllRanks(comm),
                          comm, stream);
}

FAKE_API ncclResult_t ncclBroadcast(const void* input, void* output, size_t count,
                                    ncclDataType_t type, int root, ncclComm_t comm,
                                    cudaStream_t stream) {
  FAIL_IF_ASKED();
  Trace(Described(__func__, count, type) + " from " + std::to_string(root));
  const size_t bytes = BytesOf(count, type);
  Step step{.comm = comm, .stream = stream};
  step.ins.push_back({root, Chars(output), bytes});
  for (int r = 0; root == comm->rank && r < comm->size; ++r) {
    step.outs.push_back({r, Chars(input), bytes});
  }
  return Enqueue(std::move(step));
}

FAKE_API ncclResult_t ncclAllGather(const void* input, void* output, size_t count,
                                    ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  FAIL_IF_ASKED();
  Trace(Described(__func__, count, type));
  const size_t bytes = BytesOf(count, type);
  Step step{.comm = comm, .stream = stream};
  for (int r = 0; r < comm->size; ++r) {
    step.outs.push_back({r, Chars(input), bytes});
    step.ins.push_back({r, Chars(output) + static_cast<size_t>(r) * bytes, bytes});
  }
  return Enqueue(std::move(step));
}

FAKE_API ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                               ncclComm_t comm, cudaStream_t stream) {
  FAIL_IF_ASKED();
  Trace(Described(__func__, count, type) + " to " + std::to_string(peer));
  Step step{.comm = comm, .stream = stream, .is_message = true};
  step.outs.push_back({peer, Chars(data), BytesOf(count, type)});
  return Enqueue(std::move(step));
}

FAKE_API ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer,
                               ncclComm_t comm, cudaStream_t stream) {
  FAIL_IF_ASKED();
  Trace(Described(__func__, count, type) + " from " + std::to_string(peer));
  Step step{.comm = comm, .stream = stream, .is_message = true};
  step.ins.push_back({peer, Chars(data), BytesOf(count, type)});
  return Enqueue(std::move(step));
}

#include "comm/operation.h"

namespace rankrun::comm {
namespace {

const char* Name(Operation::Kind kind) {
  switch (kind) {
    case Operation::Kind::kAllReduce:
      return "AllReduce";
    case Operation::Kind::kBroadcast:
      return "Broadcast";
    case Operation::Kind::kBarrier:
      return "Barrier";
  }
  __builtin_unreachable();
}

const char* Name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kAvg:
      return "avg";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
  }
  __builtin_unreachable();
}

std::string Data(const Operation& operation) {
  const char* type = operation.dtype == DType::kFloat32 ? " x float32" : " x float64";
  return std::to_string(operation.count) + type;
}

// FNV-1a over the bytes of one value.
uint64_t Mix(uint64_t hash, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) {
    hash = (hash ^ ((value >> shift) & 0xff)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace

std::string Describe(const Operation& operation) {
  const std::string name =
      std::string(Name(operation.kind)) + " #" + std::to_string(operation.number);
  switch (operation.kind) {
    case Operation::Kind::kAllReduce:
      return name + " (" + Data(operation) + ", " + Name(operation.op) + ")";
    case Operation::Kind::kBroadcast:
      return name + " (" + Data(operation) + " from rank " + std::to_string(operation.source) + ")";
    case Operation::Kind::kBarrier:
      return name;
  }
  __builtin_unreachable();
}

uint32_t Tag(const Operation& operation) {
  uint64_t hash = 0xcbf29ce484222325;
  hash = Mix(hash, static_cast<uint64_t>(operation.kind));
  hash = Mix(hash, operation.count);
  hash = Mix(hash, static_cast<uint64_t>(operation.dtype));
  hash = Mix(hash, static_cast<uint64_t>(operation.op));
  hash = Mix(hash, static_cast<uint64_t>(operation.source));
  const auto shape = static_cast<uint32_t>(hash >> 48);
  return static_cast<uint32_t>(operation.number & 0xffff) << 16 | shape;
}

}  // namespace rankrun::comm

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <rankrun/reduce_op.h>
#include <rankrun/tensor.h>

#include "base/status/activity_table.h"
#include "base/status/operation_names.h"

namespace rankrun::comm {

// Messages that carry objects have this tag plus the program's tag, which is
// smaller.
inline constexpr uint64_t kObjectTags = uint64_t{1} << 32;
// Messages in CPU memory that belong to those in GPU memory have this tag or more.
inline constexpr uint64_t kDeviceTags = uint64_t{1} << 33;

// Description of a collective or a message. A value; small and without
// pointers, because ranks exchange it in shared memory.
struct Operation {
  // The numbers appear on the status page and in shared memory.
  enum class Kind : uint8_t {
    kAllReduce = 1,
    kReduce = 2,
    kBroadcast = 3,
    kAllGather = 4,
    kGather = 5,
    kScatter = 6,
    kReduceScatter = 7,
    kAllToAll = 8,
    kBarrier = 9,
    kSend = 10,
    kRecv = 11,
  };
  static constexpr int kNoRoot = -1;

  Kind kind;
  DType dtype = DType::kUInt8;
  ReduceOp::Kind op = ReduceOp::kSum;    // of reductions
  DeviceType device = DeviceType::kCpu;  // that has the tensors
  bool by_backend = false;               // an outside backend carries it out itself
  ProgramCall part_of = ProgramCall::kNone;
  int32_t root = kNoRoot;         // group rank; Send and Recv: of the peer
  int32_t global_root = kNoRoot;  // global rank of `root`, for texts; may be kNoRoot
  uint64_t count = 0;             // elements of this rank's part
  uint64_t number = 0;            // number within the group, from 1
  uint64_t layout = 0;            // hash of uneven block sizes, which must agree; 0: even
  uint64_t tag = 0;               // of Send and Recv

  bool is_of_objects() const { return tag >= kObjectTags && tag < kDeviceTags; }
};

// Returns whether counts may differ between ranks: AllGather, Gather, Scatter,
// AllToAll.
bool MayBeUneven(Operation::Kind kind);

bool Reduces(Operation::Kind kind);  // AllReduce, Reduce, ReduceScatter

// Returns "AllReduce", ...
const char* NameOf(Operation::Kind kind);
// Returns "AllReduce", ..., "SendObjects" or "RecvObjects".
std::string NameOf(const Operation& operation);
// Returns "tag 5", "objects with tag 5" or "a message in GPU memory".
std::string TagInWords(uint64_t tag);

// Returns "AllReduce #12 (16 x float32, sum)", "AllReduce #12 (16 x float32 on cuda,
// sum)", "Recv (16 x float32 from rank 2, tag 5)" or "RecvObjects (objects from rank
// 2, tag 5)".
std::string Describe(const Operation& operation);

// A message as one side of it declares it: "rank 3", 4 elements of int32.
struct MessageSide {
  std::string name;
  DType dtype;
  uint64_t bytes;
};
// Returns "rank 0 sends 4 x int32 with tag 5 to rank 1, which expects 2 x int32".
std::string DescribeMismatch(uint64_t tag, const MessageSide& sender, const MessageSide& receiver);

// Returns a hash that is equal for two operations if ranks may call them
// together, and otherwise differs except for collisions of 64 bits. Never 0.
// Covers the number, and the count unless MayBeUneven.
uint64_t Fingerprint(const Operation& operation);

// Returns the form for the status page.
inline ActivityRecord RecordOf(const Operation& operation, uint64_t fingerprint) {
  return {.kind = static_cast<uint8_t>(operation.kind),
          .dtype = static_cast<uint8_t>(operation.dtype),
          .op = operation.op,
          .part_of = operation.part_of,
          .root = operation.global_root,
          .number = operation.number,
          .count = operation.count,
          .fingerprint = fingerprint};
}

}  // namespace rankrun::comm

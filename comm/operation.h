#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <rankrun/reduce_op.h>
#include <rankrun/tensor.h>

namespace rankrun::comm {

// Tags of messages that carry objects: this and the program's tag, which is below it.
inline constexpr uint64_t kObjectTags = uint64_t{1} << 32;

// A collective, or a message, as its caller sees it. A value; small and flat,
// because ranks show it to each other in shared memory.
struct Operation {
  // The numbers are shown on the status page and to other ranks.
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
  ReduceOp::Kind op = ReduceOp::kSum;  // of what reduces
  int32_t root = kNoRoot;              // group rank; of Send and Recv: the peer
  int32_t global_root = kNoRoot;       // the same as users know it; kNoRoot: no other
  uint64_t count = 0;                  // elements of this rank's part
  uint64_t number = 0;                 // place in the group's sequence, from 1
  uint64_t layout = 0;                 // a hash of what else must agree: the sizes of uneven places
  uint64_t tag = 0;                    // of Send and Recv

  bool is_of_objects() const { return tag >= kObjectTags; }
};

// Whether ranks may pass different counts: AllGather, Gather, Scatter, AllToAll.
bool MayBeUneven(Operation::Kind kind);

// "AllReduce", ...
const char* NameOf(Operation::Kind kind);
// The same, and "SendObjects", "RecvObjects".
std::string NameOf(const Operation& operation);
// "tag 5", of a message's tag; "objects with tag 5".
std::string TagInWords(uint64_t tag);

// "AllReduce #12 (16 x float32, sum)", "Recv (16 x float32 from rank 2, tag 5)",
// "RecvObjects (objects from rank 2, tag 5)".
std::string Describe(const Operation& operation);

// Equal for two operations just if ranks may call them together (up to chance:
// 64 bits); never 0. Contains the number, and the count unless MayBeUneven.
uint64_t Fingerprint(const Operation& operation);

}  // namespace rankrun::comm

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <rankrun/process_group.h>
#include <rankrun/tensor.h>

namespace rankrun::comm {

// What the ranks of a group must agree on in one collective. A value.
struct Operation {
  enum class Kind { kAllReduce, kBroadcast, kBarrier };

  Kind kind;
  std::size_t count = 0;
  DType dtype = DType::kFloat32;
  ReduceOp op = ReduceOp::kSum;  // of kAllReduce
  int source = 0;                // of kBroadcast
  uint64_t number = 0;           // place in the group's sequence, from 1
};

// "AllReduce #12 (16 x float32, sum)".
std::string Describe(const Operation& operation);

// Differs, as far as 32 bits can, between any two operations that the ranks
// must not confuse, neighbours in the sequence always. Ranks that disagree
// thus time out instead of reducing garbage (or worse: Gloo ends the process
// when a message is longer than expected).
uint32_t Tag(const Operation& operation);

}  // namespace rankrun::comm

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <rankrun/reduce_op.h>
#include <rankrun/tensor.h>

#include "bench/batches.h"

namespace rankrun::bench {

enum class Collective {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kAllToAll,
  kSendRecv,
  kBarrier,
};

// "all_reduce", ...
const char* NameOf(Collective collective);
// "sum", ...
const char* NameOf(ReduceOp::Kind op);

struct Options {
  std::vector<Collective> collectives;
  size_t min_bytes = 8;
  size_t max_bytes = 256 << 20;
  size_t factor = 2;  // factor between consecutive sizes
  DType dtype = DType::kFloat32;
  ReduceOp::Kind op = ReduceOp::kSum;
  int root = 0;         // of broadcast
  std::string backend;  // empty: the library's choice
  bool json = false;
  bool tune = false;  // measure each algorithm
  BatchPlan plan;
};

struct Parsed {
  Options options;
  std::optional<int> exit_code;  // set if the program must exit: help, or a bad flag
  std::string text;              // text to print before the exit
};

Parsed ParseOptions(int argc, const char* const* argv);

}  // namespace rankrun::bench

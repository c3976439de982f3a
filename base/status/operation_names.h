#pragma once

#include <cstdint>
#include <string>

namespace rankrun {

// MonitoredBarrier, which is no operation of a backend.
constexpr uint8_t kMonitoredBarrierKind = 64;

// Return the names of librankrun's operation numbers, as used on the status
// page, between ranks and in the C ABI. "unknown" for all others, because a
// number may come from memory that another process writes.
const char* NameOfCollective(uint8_t kind);  // "AllReduce" for 1, as comm's Operation::Kind
const char* NameOfDType(uint8_t dtype);      // "float32" for 0, as DType
const char* NameOfReduceOp(uint8_t op);      // "sum" for 0, as ReduceOp::Kind

// Calls of the program that consist of several operations. At most 31.
enum class ProgramCall : uint8_t {
  kNone = 0,  // the operation is the call
  kBroadcastObjects = 1,
  kAllGatherObject = 2,
  kGatherObject = 3,
  kScatterObjects = 4,
  kRpcShutdown = 5,
  kDataParallel = 6,
  kJoin = 7,
};
// Returns "AllGatherObject: ", the beginning of texts about a part of it; "" for kNone.
std::string PrefixOf(ProgramCall call);

// Whether an operation of this number has a ReduceOp.
bool IsReduction(uint8_t kind);

}  // namespace rankrun

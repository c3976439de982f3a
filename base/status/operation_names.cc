#include "base/status/operation_names.h"

#include <cstddef>

namespace rankrun {
namespace {

constexpr const char* kCollectives[] = {nullptr,     "AllReduce", "Reduce",  "Broadcast",
                                        "AllGather", "Gather",    "Scatter", "ReduceScatter",
                                        "AllToAll",  "Barrier",   "Send",    "Recv"};
constexpr const char* kDTypes[] = {
    "float32", "float64",   "float16",    "bfloat16",    "int8",       "int16",
    "int32",   "int64",     "uint8",      "uint16",      "uint32",     "uint64",
    "bool",    "complex64", "complex128", "float8_e4m3", "float8_e5m2"};
constexpr const char* kReduceOps[] = {"sum",     "avg",    "product", "min",       "max",
                                      "bit_and", "bit_or", "bit_xor", "premul_sum"};

constexpr const char* kProgramCalls[] = {
    nullptr,          "BroadcastObjects", "AllGatherObject", "GatherObject",
    "ScatterObjects", "rpc::Shutdown",    "DataParallel",    "Join"};

template <size_t kCount>
const char* Pick(const char* const (&names)[kCount], uint8_t number) {
  return number < kCount && names[number] != nullptr ? names[number] : "unknown";
}

}  // namespace

const char* NameOfCollective(uint8_t kind) {
  return kind == kMonitoredBarrierKind ? "MonitoredBarrier" : Pick(kCollectives, kind);
}
const char* NameOfDType(uint8_t dtype) { return Pick(kDTypes, dtype); }
const char* NameOfReduceOp(uint8_t op) { return Pick(kReduceOps, op); }

std::string PrefixOf(ProgramCall call) {
  if (call == ProgramCall::kNone) return "";
  return std::string(Pick(kProgramCalls, static_cast<uint8_t>(call))) + ": ";
}

bool IsReduction(uint8_t kind) {
  constexpr uint8_t kAllReduce = 1;
  constexpr uint8_t kReduce = 2;
  constexpr uint8_t kReduceScatter = 7;
  return kind == kAllReduce || kind == kReduce || kind == kReduceScatter;
}

}  // namespace rankrun

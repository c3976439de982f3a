#include "comm/reduce/reduction.h"

#include <cstring>
#include <string>

#ifdef RANKRUN_AVX2_KERNELS
#include <cpuid.h>
#endif

#include "base/check.h"
#include "base/status/operation_names.h"
#include "comm/reduce/reduction_kernels.h"

namespace rankrun::comm {

#ifdef RANKRUN_AVX2_KERNELS
const ReductionKernels* Avx2Kernels() {
  __builtin_cpu_init();
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;  // __builtin_cpu_supports lacks "f16c" in some compilers
  bool has_f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
  return __builtin_cpu_supports("avx2") && has_f16c ? &avx2::kKernels : nullptr;
}
#else
const ReductionKernels* Avx2Kernels() { return nullptr; }
#endif

namespace {

using Kind = ReduceOp::Kind;

const ReductionKernels& Kernels() {
  static const ReductionKernels& kernels = Avx2Kernels() ? *Avx2Kernels() : baseline::kKernels;
  return kernels;
}

enum class Family { kInteger, kFloat, kBool, kComplex, kOpaque };

Family FamilyOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kFloat16:
    case DType::kBFloat16:
      return Family::kFloat;
    case DType::kBool:
      return Family::kBool;
    case DType::kComplex64:
    case DType::kComplex128:
      return Family::kComplex;
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return Family::kOpaque;
    default:
      return Family::kInteger;
  }
}

// Returns why a family does not support an operation; null if it does.
const char* Objection(Family family, Kind op) {
  bool bitwise = op == Kind::kBitAnd || op == Kind::kBitOr || op == Kind::kBitXor;
  switch (family) {
    case Family::kInteger:
      return op == Kind::kPremulSum ? "want a floating-point or complex dtype" : nullptr;
    case Family::kFloat:
      return bitwise ? "want an integral dtype or bool" : nullptr;
    case Family::kBool:
      return op == Kind::kAvg || op == Kind::kPremulSum
                 ? "want sum, product, min, max, bit_and, bit_or or bit_xor"
                 : nullptr;
    case Family::kComplex:
      return bitwise || op == Kind::kProduct || op == Kind::kMin || op == Kind::kMax
                 ? "want sum, avg or premul_sum"
                 : nullptr;
    case Family::kOpaque:
      return "8-bit floats can be moved, not reduced";
  }
  __builtin_unreachable();
}

// Maps boolean operations to bytes of 0 or 1: "or" is the maximum, "and" the
// minimum.
Kind OfBooleans(Kind op) {
  switch (op) {
    case Kind::kSum:
    case Kind::kMax:
    case Kind::kBitOr:
      return Kind::kMax;
    case Kind::kBitXor:
      return Kind::kBitXor;
    default:
      return Kind::kMin;
  }
}

}  // namespace

Result<LoweredReduction> Lower(DType dtype, const ReduceOp& op, int world_size) {
  auto invalid = [](const std::string& why) { return Error{ErrorCode::kInvalid, why}; };
  if (SizeOf(dtype) == 0) {
    return invalid("no dtype has the number " + std::to_string(static_cast<int>(dtype)));
  }
  if (op.kind > Kind::kPremulSum) {  // from the C ABI
    return invalid("no operation has the number " + std::to_string(static_cast<int>(op.kind)));
  }
  Family family = FamilyOf(dtype);
  if (const char* objection = Objection(family, op.kind)) {
    return invalid(std::string("does not support ") + NameOfReduceOp(op.kind) + " on " +
                   rankrun::NameOf(dtype) + " tensors: " + objection);
  }
  LoweredReduction lowered{.reduction = {.dtype = dtype, .op = op.kind}};
  if (op.kind == Kind::kAvg) lowered.reduction.divisor = world_size;
  if (op.kind == Kind::kAvg || op.kind == Kind::kPremulSum) lowered.reduction.op = Kind::kSum;
  if (family == Family::kBool) {
    lowered.reduction.dtype = DType::kUInt8;
    lowered.reduction.op = OfBooleans(op.kind);
  }
  if (family == Family::kComplex) {
    bool single = dtype == DType::kComplex64;
    lowered.reduction.dtype = single ? DType::kFloat32 : DType::kFloat64;
    lowered.per_element = 2;
  }
  return lowered;
}

void Reduce(const Reduction& reduction, void* output, std::span<const void* const> inputs,
            size_t count) {
  RANKRUN_CHECK(!inputs.empty(), "a reduction of nothing");
  if (count == 0) return;
  if (inputs.size() == 1 && reduction.divisor == 1) {
    if (output != inputs[0]) std::memcpy(output, inputs[0], count * SizeOf(reduction.dtype));
    return;
  }
  Kernels().reduce(reduction, static_cast<std::byte*>(output), inputs.data(), inputs.size(), count);
}

void Scale(DType dtype, void* output, const void* input, double factor, size_t count) {
  Kernels().scale(dtype, static_cast<std::byte*>(output), static_cast<const std::byte*>(input),
                  factor, count);
}

}  // namespace rankrun::comm

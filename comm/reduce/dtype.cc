#include <cstdint>

#include <rankrun/dtype.h>

#include "base/status/operation_names.h"

namespace rankrun {
namespace {

constexpr size_t kSizes[kDTypes] = {4, 8, 2, 2, 1, 2, 4, 8, 1, 2, 4, 8, 1, 8, 16, 1, 1};

// The C ABI can pass any number.
bool Known(DType dtype) { return static_cast<int>(dtype) < kDTypes; }

}  // namespace

size_t SizeOf(DType dtype) { return Known(dtype) ? kSizes[static_cast<int>(dtype)] : 0; }

const char* NameOf(DType dtype) { return NameOfDType(static_cast<uint8_t>(dtype)); }

}  // namespace rankrun

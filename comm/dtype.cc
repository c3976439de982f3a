#include <rankrun/dtype.h>

namespace rankrun {
namespace {

struct Description {
  std::size_t bytes;
  const char* name;
};

// By number.
constexpr Description kDescriptions[kDTypes] = {
    {4, "float32"},     {8, "float64"},     {2, "float16"}, {2, "bfloat16"},  {1, "int8"},
    {2, "int16"},       {4, "int32"},       {8, "int64"},   {1, "uint8"},     {2, "uint16"},
    {4, "uint32"},      {8, "uint64"},      {1, "bool"},    {8, "complex64"}, {16, "complex128"},
    {1, "float8_e4m3"}, {1, "float8_e5m2"},
};

// The C ABI lets in any number.
bool Known(DType dtype) { return static_cast<int>(dtype) < kDTypes; }

}  // namespace

std::size_t SizeOf(DType dtype) {
  return Known(dtype) ? kDescriptions[static_cast<int>(dtype)].bytes : 0;
}

const char* NameOf(DType dtype) {
  return Known(dtype) ? kDescriptions[static_cast<int>(dtype)].name : "unknown";
}

}  // namespace rankrun

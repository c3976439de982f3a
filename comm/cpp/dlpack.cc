#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <rankrun/dlpack.h>

#include "base/result.h"
#include "comm/core/throw.h"

namespace rankrun {
namespace {

// Type codes that the header of Debian 12 does not have. They are final.
// Source: DLPack 1.1.
constexpr uint8_t kCodeBool = 6;
constexpr uint8_t kCodeFloat8E4M3 = 10;  // kDLFloat8_e4m3fn, the variant without infinities
constexpr uint8_t kCodeFloat8E5M2 = 12;

struct Pair {
  DType dtype;
  uint8_t code;
  uint8_t bits;
};
constexpr Pair kPairs[] = {
    {DType::kFloat32, kDLFloat, 32},
    {DType::kFloat64, kDLFloat, 64},
    {DType::kFloat16, kDLFloat, 16},
    {DType::kBFloat16, kDLBfloat, 16},
    {DType::kInt8, kDLInt, 8},
    {DType::kInt16, kDLInt, 16},
    {DType::kInt32, kDLInt, 32},
    {DType::kInt64, kDLInt, 64},
    {DType::kUInt8, kDLUInt, 8},
    {DType::kUInt16, kDLUInt, 16},
    {DType::kUInt32, kDLUInt, 32},
    {DType::kUInt64, kDLUInt, 64},
    {DType::kBool, kCodeBool, 8},
    {DType::kComplex64, kDLComplex, 64},
    {DType::kComplex128, kDLComplex, 128},
    {DType::kFloat8E4M3, kCodeFloat8E4M3, 8},
    {DType::kFloat8E5M2, kCodeFloat8E5M2, 8},
};

Error Invalid(const std::string& message) {
  return Error{ErrorCode::kInvalid, "DLPack: " + message};
}

Result<DType> DTypeFrom(const DLDataType& type) {
  if (type.lanes != 1) {
    return Invalid("elements have " + std::to_string(type.lanes) + " lanes: want 1");
  }
  for (const Pair& pair : kPairs) {
    if (pair.code == type.code && pair.bits == type.bits) return pair.dtype;
  }
  return Invalid("unknown element type: code " + std::to_string(type.code) + " of " +
                 std::to_string(type.bits) + " bits");
}

Result<Device> DeviceFrom(const DLDevice& device) {
  // A copy of the bytes: a newer DLPack may have values that this enumeration lacks.
  int type = 0;
  static_assert(sizeof type == sizeof device.device_type);
  std::memcpy(&type, &device.device_type, sizeof type);
  // Pinned memory is CPU memory, too.
  switch (type) {
    case kDLCPU:
    case kDLCUDAHost:
      return Device{};
    case kDLCUDA:
      return Device{.type = DeviceType::kCuda, .index = device.device_id};
    default:
      return Invalid("device type " + std::to_string(type) +
                     ": want 1 (CPU), 2 (CUDA) or 3 (CPU, pinned)");
  }
}

std::string Text(std::span<const int64_t> numbers) {
  std::string text;
  for (int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "(" + text + ")";
}

// Returns whether a tensor with elements is dense in row-major order. A
// dimension of one element may have any stride.
bool IsDense(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t want = 1;
  for (size_t i = shape.size(); i-- > 0; want *= shape[i]) {
    if (shape[i] != 1 && strides[i] != want) return false;
  }
  return true;
}

// Returns no value if a dimension is negative or the number of elements
// overflows.
std::optional<int64_t> CountOf(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t length : shape) {
    if (length < 0 || __builtin_mul_overflow(count, length, &count)) return std::nullopt;
  }
  return count;
}

Result<Tensor> View(const DLTensor& tensor) {
  auto dtype = DTypeFrom(tensor.dtype);
  if (!dtype) return std::move(dtype).error();
  auto device = DeviceFrom(tensor.device);
  if (!device) return std::move(device).error();
  if (tensor.ndim < 0) return Invalid(std::to_string(tensor.ndim) + " dimensions");
  auto dimensions = static_cast<size_t>(tensor.ndim);
  std::span<const int64_t> shape(tensor.shape, dimensions);
  std::optional<int64_t> count = CountOf(shape);
  if (!count) return Invalid("impossible shape " + Text(shape));
  if (*count > 0 && tensor.data == nullptr) {
    return Invalid("shape " + Text(shape) + " without memory");
  }
  if (*count > 0 && tensor.strides != nullptr && !IsDense(shape, {tensor.strides, dimensions})) {
    return Invalid("strides " + Text({tensor.strides, dimensions}) + " of shape " + Text(shape) +
                   " are not those of a dense tensor in row-major order: pass a contiguous copy");
  }
  // By numbers, so that an impossible offset is no overflow of a pointer.
  uintptr_t begin = reinterpret_cast<uintptr_t>(tensor.data);
  if (tensor.byte_offset > UINTPTR_MAX - begin) {
    return Invalid("an offset of " + std::to_string(tensor.byte_offset) + " bytes is impossible");
  }
  void* const data =
      tensor.data == nullptr ? nullptr : reinterpret_cast<void*>(begin + tensor.byte_offset);
  Tensor view(data, *dtype, static_cast<size_t>(*count));
  view.device = *device;
  if (dimensions > 0 && *count > 0) view.row = view.count / static_cast<size_t>(shape[0]);
  return view;
}

// Memory of an exported tensor, which the deleter frees.
struct Exported {
  DLManagedTensor managed;
  std::shared_ptr<void> owner;
  int64_t shape[2];
};

void Delete(DLManagedTensor* tensor) { delete static_cast<Exported*>(tensor->manager_ctx); }

}  // namespace

Tensor FromDLTensor(const void* tensor) {
  return comm::Unwrap(View(*static_cast<const DLTensor*>(tensor)));
}

Tensor FromDLPack(const DLManagedTensor& tensor) { return FromDLTensor(&tensor.dl_tensor); }

DLManagedTensor* ToDLPack(const Tensor& tensor, std::shared_ptr<void> owner) {
  if (tensor.row == 0 || tensor.count % tensor.row != 0) {
    comm::Throw(Invalid(std::to_string(tensor.count) + " elements in rows of " +
                        std::to_string(tensor.row)));
  }
  auto exported = std::make_unique<Exported>();
  exported->owner = std::move(owner);
  exported->shape[0] = static_cast<int64_t>(tensor.count / tensor.row);
  exported->shape[1] = static_cast<int64_t>(tensor.row);
  DLTensor& out = exported->managed.dl_tensor;
  for (const Pair& pair : kPairs) {
    if (pair.dtype == tensor.dtype) out.dtype = {.code = pair.code, .bits = pair.bits, .lanes = 1};
  }
  if (out.dtype.lanes != 1) {
    comm::Throw(
        Invalid("no dtype has the number " + std::to_string(static_cast<int>(tensor.dtype))));
  }
  out.data = tensor.data;
  out.device = {.device_type = static_cast<DLDeviceType>(tensor.device.type),
                .device_id = tensor.device.index};
  out.ndim = tensor.row == 1 ? 1 : 2;
  out.shape = exported->shape;
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = Delete;
  return &exported.release()->managed;
}

}  // namespace rankrun

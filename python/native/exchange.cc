// The shortest way from a tensor of PyTorch (2.10 and newer) to an all_reduce: by DLPack's table of
// functions, without a call of Python.

#include <dlpack/dlpack.h>

#include <optional>

#include "python/native/arguments.h"
#include "python/native/errors.h"
#include "python/native/functions.h"
#include "python/native/work.h"

namespace rankrun::python {
namespace {

// The beginning of DLPackExchangeAPI, version 1, of newer headers than Debian 12's.
struct ExchangeApi {
  struct {
    struct {
      uint32_t major, minor;
    } version;
    void* previous;
  } header;
  void* allocate;
  void* to_managed;
  void* from_managed;
  // Describes a tensor without a copy, as long as the object lives. Null: is not offered.
  int (*describe)(void* object, DLTensor* description);
};
constexpr uint32_t kMajor = 1;

int (*describe)(void* object, DLTensor* description) = nullptr;

std::optional<rankrun_dtype> TypeOf(DLDataType type) {
  if (type.lanes != 1) return std::nullopt;
  const bool is_int = type.code == kDLInt, is_float = type.code == kDLFloat;
  switch (type.bits) {
    case 8:
      if (type.code == kDLUInt) return RANKRUN_UINT8;
      return is_int ? std::optional(RANKRUN_INT8) : std::nullopt;
    case 16:
      if (type.code == kDLBfloat) return RANKRUN_BFLOAT16;
      return is_float ? std::optional(RANKRUN_FLOAT16) : std::nullopt;
    case 32:
      if (is_int) return RANKRUN_INT32;
      return is_float ? std::optional(RANKRUN_FLOAT32) : std::nullopt;
    case 64:
      if (is_int) return RANKRUN_INT64;
      return is_float ? std::optional(RANKRUN_FLOAT64) : std::nullopt;
    default:
      return std::nullopt;
  }
}

// Returns the tensor if it is dense, in memory of the CPU and of a frequent type.
std::optional<rankrun_tensor> SimpleTensor(PyObject* object) {
  DLTensor from;
  if (describe(object, &from) != 0) {
    PyErr_Clear();  // the usual way says why
    return std::nullopt;
  }
  const auto dtype = TypeOf(from.dtype);
  if (!dtype || from.device.device_type != kDLCPU) return std::nullopt;
  int64_t count = 1;
  for (int i = from.ndim - 1; i >= 0; --i) {
    if (from.strides != nullptr && from.shape[i] != 1 && from.strides[i] != count) {
      return std::nullopt;
    }
    count *= from.shape[i];
  }
  rankrun_tensor tensor{};
  tensor.data = static_cast<char*>(from.data) + from.byte_offset;
  tensor.count = static_cast<size_t>(count);
  tensor.dtype = *dtype;
  return tensor;
}

// use_exchange(capsule): takes the table of a tensor's class. Returns whether it can be used.
PyObject* UseExchange(PyObject*, PyObject* capsule) {
  const auto* api = static_cast<ExchangeApi*>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
  if (api == nullptr) return nullptr;
  if (api->header.version.major == kMajor) describe = api->describe;
  return PyBool_FromLong(describe != nullptr);
}

// all_reduce_now(group, tensor, kind, timeout_ms): returns whether it was done; False: the tensor
// needs the usual way.
PyObject* AllReduceNow(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  PyObject* object = in.Object();
  const rankrun_reduce_op op{.factor = 0, .kind = static_cast<uint8_t>(in.Integer())};
  const int64_t timeout = in.Integer();
  if (!in.Complete()) return nullptr;
  const auto tensor = SimpleTensor(object);
  if (!tensor) return PyBool_FromLong(0);
  auto reduce = [&] { return rankrun_all_reduce(group, &*tensor, &op, timeout, nullptr); };
  const bool ok = Succeeds(reduce);
  SweepWork();
  return ok ? PyBool_FromLong(1) : nullptr;
}

}  // namespace

PyMethodDef exchange_functions[] = {
    {"use_exchange", UseExchange, METH_O, nullptr},
    {"all_reduce_now", Function<AllReduceNow>(), METH_FASTCALL, nullptr},
    {}};

}  // namespace rankrun::python

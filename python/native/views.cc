// Views of memory that objects of other packages own: buffers (numpy, array, bytearray), and
// objects with __dlpack__.

#include <dlpack/dlpack.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "python/native/arguments.h"
#include "python/native/errors.h"
#include "python/native/functions.h"

namespace rankrun::python {
namespace {

constexpr const char* kBuffer = "rankrun.buffer";
constexpr const char* kTensor = "dltensor";  // names of DLPack's protocol
constexpr const char* kUsedTensor = "used_dltensor";

void ReleaseBuffer(PyObject* capsule) {
  auto* buffer = static_cast<Py_buffer*>(PyCapsule_GetPointer(capsule, kBuffer));
  PyBuffer_Release(buffer);
  delete buffer;
}

std::optional<rankrun_dtype> IntegerOf(Py_ssize_t size, bool is_signed) {
  switch (size) {
    case 1:
      return is_signed ? RANKRUN_INT8 : RANKRUN_UINT8;
    case 2:
      return is_signed ? RANKRUN_INT16 : RANKRUN_UINT16;
    case 4:
      return is_signed ? RANKRUN_INT32 : RANKRUN_UINT32;
    case 8:
      return is_signed ? RANKRUN_INT64 : RANKRUN_UINT64;
    default:
      return std::nullopt;
  }
}

// Returns the type of a format of the module struct, in this machine's byte order.
std::optional<rankrun_dtype> TypeOf(std::string_view format, Py_ssize_t size) {
  if (format.starts_with('@') || format.starts_with('=') || format.starts_with('<')) {
    format.remove_prefix(1);
  }
  if (format == "Zf") return RANKRUN_COMPLEX64;
  if (format == "Zd") return RANKRUN_COMPLEX128;
  if (format.size() != 1) return std::nullopt;
  switch (format.front()) {
    case 'e':
      return RANKRUN_FLOAT16;
    case 'f':
      return RANKRUN_FLOAT32;
    case 'd':
      return RANKRUN_FLOAT64;
    case '?':
      return RANKRUN_BOOL;
    case 'c':
      return RANKRUN_UINT8;
    default:
      break;
  }
  constexpr std::string_view kSigned = "bhilqn", kUnsigned = "BHILQN";
  if (kSigned.find(format.front()) != std::string_view::npos) return IntegerOf(size, true);
  if (kUnsigned.find(format.front()) != std::string_view::npos) return IntegerOf(size, false);
  return std::nullopt;
}

// Steals `owner`.
PyObject* Describe(void* data, size_t count, size_t row, int dtype, PyObject* owner) {
  const auto address = reinterpret_cast<unsigned long long>(data);  // NOLINT(google-runtime-int)
  return Py_BuildValue("(KnniN)", address, static_cast<Py_ssize_t>(count),
                       static_cast<Py_ssize_t>(row), dtype, owner);
}

PyObject* ViewOfBuffer(PyObject* object, bool is_written) {
  auto buffer = std::make_unique<Py_buffer>();
  const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (is_written ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object, buffer.get(), flags) != 0) return nullptr;
  const char* format = buffer->format != nullptr ? buffer->format : "B";
  const auto dtype = TypeOf(format, buffer->itemsize);
  if (!dtype) {
    PyErr_Format(PyExc_TypeError,
                 "elements of the format '%s': want integers of at most 8 bytes, bool, or float or "
                 "complex numbers of 4 or 8 bytes a part, in this machine's byte order",
                 format);
    PyBuffer_Release(buffer.get());
    return nullptr;
  }
  const auto count = static_cast<size_t>(buffer->len / buffer->itemsize);
  size_t row = 1;
  for (int i = 1; i < buffer->ndim; ++i) row *= static_cast<size_t>(buffer->shape[i]);
  void* data = buffer->buf;
  PyObject* owner = PyCapsule_New(buffer.release(), kBuffer, ReleaseBuffer);
  if (owner == nullptr) return nullptr;
  return Describe(data, count, row, *dtype, owner);
}

void ReleaseTensor(PyObject* capsule) {
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, kUsedTensor));
  if (managed->deleter != nullptr) managed->deleter(managed);
}

PyObject* ViewOfDlpack(PyObject* object) {
  const Ref method(PyObject_GetAttrString(object, "__dlpack__"));
  if (!method) {
    PyErr_Clear();
    return PyErr_Format(PyExc_TypeError,
                        "%R: want an object with a buffer, such as a numpy array or a bytearray, "
                        "or one with __dlpack__",
                        Py_TYPE(object));
  }
  Ref capsule(PyObject_CallObject(method.get(), nullptr));
  if (!capsule) return nullptr;
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.get(), kTensor));
  if (managed == nullptr) return nullptr;
  rankrun_tensor tensor{};
  if (!Succeeds([&] { return rankrun_from_dlpack(managed, &tensor); })) return nullptr;
  if (tensor.device_type != RANKRUN_CPU) {
    PyErr_SetString(PyExc_TypeError, "memory of a GPU: want memory of the CPU");
    return nullptr;
  }
  if (PyCapsule_SetName(capsule.get(), kUsedTensor) != 0 ||
      PyCapsule_SetDestructor(capsule.get(), ReleaseTensor) != 0) {
    return nullptr;
  }
  return Describe(tensor.data, tensor.count, tensor.row, tensor.dtype, capsule.Release());
}

// view(object, is_written): returns the tensor of an object, with (address, count, row, dtype,
// owner). The owner keeps the object's memory.
PyObject* View(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  PyObject* object = in.Object();
  const bool is_written = in.Flag();
  if (!in.Complete()) return nullptr;
  return PyObject_CheckBuffer(object) != 0 ? ViewOfBuffer(object, is_written)
                                           : ViewOfDlpack(object);
}

}  // namespace

PyMethodDef view_functions[] = {{"view", Function<View>(), METH_FASTCALL, nullptr}, {}};

}  // namespace rankrun::python

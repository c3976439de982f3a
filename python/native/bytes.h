#pragma once

#include <memory>

#include "python/native/interpreter.h"

namespace rankrun::python {

// Bytes, or an array of them, that the library returned.
struct ReleaseBytes {
  void operator()(rankrun_bytes* bytes) const { rankrun_bytes_release(bytes); }
};
using OwnedBytes = std::unique_ptr<rankrun_bytes, ReleaseBytes>;

// Returns an object of type bytes; None for null.
inline PyObject* ObjectOf(const rankrun_bytes* bytes) {
  if (bytes == nullptr) return Ref::To(Py_None).Release();
  return PyBytes_FromStringAndSize(static_cast<const char*>(bytes->data),
                                   static_cast<Py_ssize_t>(bytes->size));
}

// Returns a list of `count` objects of type bytes.
inline PyObject* ListOf(const rankrun_bytes* array, size_t count) {
  Ref list(PyList_New(0));
  for (size_t i = 0; list && i < count; ++i) {
    const Ref item(ObjectOf(&array[i]));
    if (!item || PyList_Append(list.get(), item.get()) != 0) return nullptr;
  }
  return list.Release();
}

}  // namespace rankrun::python

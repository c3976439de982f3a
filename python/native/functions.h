#pragma once

#include "python/native/interpreter.h"

namespace rankrun::python {

// A function of the module that takes its arguments as an array.
using ArrayFunction = PyObject* (*)(PyObject* module, PyObject* const* values, Py_ssize_t count);

template <ArrayFunction kFunction>
PyCFunction Function() {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(kFunction));
}

// Functions of the module, by the name of a function of the C ABI without its prefix.
extern PyMethodDef collective_functions[];
extern PyMethodDef exchange_functions[];
extern PyMethodDef group_functions[];
extern PyMethodDef message_functions[];
extern PyMethodDef object_functions[];
extern PyMethodDef store_functions[];
extern PyMethodDef view_functions[];
extern PyMethodDef work_functions[];

}  // namespace rankrun::python

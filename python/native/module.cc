// rankrun._native: librankrun for Python. Its functions check types, not the use, and are for the
// package's own modules; dtypes and operations are the numbers of the C ABI.

#include "python/native/errors.h"
#include "python/native/functions.h"
#include "python/native/interpreter.h"

namespace rankrun::python {
namespace {

int Fill(PyObject* module) {
  for (PyMethodDef* functions :
       {collective_functions, exchange_functions, group_functions, message_functions,
        object_functions, store_functions, view_functions, work_functions}) {
    if (PyModule_AddFunctions(module, functions) != 0) return -1;
  }
  return AddErrors(module) && SetInterruptHook() ? 0 : -1;
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(Fill)}, {}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "rankrun._native",
                          "librankrun for the modules of this package.",
                          0,
                          nullptr,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace rankrun::python

PyMODINIT_FUNC PyInit__native() {
  if (rankrun_abi_version() < RANKRUN_ABI_VERSION) {
    PyErr_Format(PyExc_ImportError, "librankrun has version %u of its ABI: want %u or newer",
                 rankrun_abi_version(), RANKRUN_ABI_VERSION);
    return nullptr;
  }
  return PyModuleDef_Init(&rankrun::python::definition);
}

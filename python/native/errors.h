#pragma once

#include <string>
#include <utility>

#include "python/native/interpreter.h"

namespace rankrun::python {

// Adds the exceptions of dist_error.h to the module. Returns false with an exception set.
bool AddErrors(PyObject* module);

// Raises the exception of `status`, which is not RANKRUN_OK, with the text of
// rankrun_last_error(). Returns null.
PyObject* Raise(rankrun_status status);

// Lets the interpreter's signal handlers run in waits: a Ctrl-C raises KeyboardInterrupt.
bool SetInterruptHook();

// Returns the status of the exception that is set, for a function of a store, and its text. Leaves
// an exception that ends the program, such as KeyboardInterrupt, and clears any other.
std::pair<rankrun_status, std::string> TakeError();

// Runs `call`, which returns a status, without the interpreter's lock. Returns whether it
// succeeded; otherwise an exception is set.
template <typename Call>
bool Succeeds(Call call) {
  rankrun_status status = RANKRUN_OK;
  {
    const WithoutLock others_run;
    status = call();
  }
  if (PyErr_Occurred() != nullptr) return false;  // of a signal handler
  if (status != RANKRUN_OK) Raise(status);
  return status == RANKRUN_OK;
}

}  // namespace rankrun::python

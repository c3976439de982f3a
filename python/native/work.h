#pragma once

#include <vector>

#include "python/native/arguments.h"
#include "python/native/errors.h"
#include "python/native/functions.h"
#include "python/native/interpreter.h"

namespace rankrun::python {

// Makes the handle of an operation, which keeps `owners` alive until the operation has ended, also
// after the handle is gone.
PyObject* NewWork(rankrun_work* work, const std::vector<PyObject*>& owners);

// Gives back what operations whose handle is gone have kept, if they have ended.
void SweepWork();

// Carries out `call(rankrun_work**)`. Returns None, or if `is_async` the handle of the work.
template <typename Call>
PyObject* Run(Arguments& in, bool is_async, Call call) {
  if (!in.Complete()) return nullptr;
  rankrun_work* work = nullptr;
  const bool ok = Succeeds([&] { return call(is_async ? &work : nullptr); });
  SweepWork();
  Ref handle(work != nullptr ? NewWork(work, in.owners()) : nullptr);
  if (!ok) return nullptr;
  return is_async ? handle.Release() : Ref::To(Py_None).Release();
}

}  // namespace rankrun::python

#pragma once

#include <cstdint>

#include "python/native/interpreter.h"

namespace rankrun::python {

// Opens a store that calls the methods of `object`: set(key, value), get(key, timeout_ms),
// add(key, delta), check(keys), wait(keys, timeout_ms), compare_set(key, expected, desired),
// delete(key) and num_keys(), with the results of those of a Store.
// Thread: without the interpreter's lock; that of the methods any.
rankrun_status OpenOwnStore(PyObject* object, int64_t timeout_ms, rankrun_store** store);

}  // namespace rankrun::python

#!/usr/bin/env bash
# Prints the row of a CPython 3.8 to 3.13 for the table in
# agent/stacks/helper/python_layout.cc, from its internal headers.
# Usage: scripts/python_layout.sh PYTHON     (a program with its headers installed)
set -eu
python=${1:?usage: scripts/python_layout.sh PYTHON}
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/layout.c" <<'END'
#define Py_BUILD_CORE 1
#include <Python.h>
#include <frameobject.h>
#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX >= 0x03090000
#include "internal/pycore_interp.h"
#include "internal/pycore_runtime.h"
#else
#include "internal/pycore_pystate.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#endif
#define NONE (-1L)
#define AT(type, field) ((long)offsetof(type, field))
int main(void) {
  long row[] = {
    PY_MINOR_VERSION, AT(_PyRuntimeState, interpreters.head), AT(PyInterpreterState, next),
#if PY_VERSION_HEX >= 0x030b0000
    AT(PyInterpreterState, threads.head), AT(PyThreadState, next), AT(PyThreadState, thread_id),
    AT(PyThreadState, native_thread_id),
#if PY_VERSION_HEX >= 0x030d0000
    AT(PyThreadState, current_frame), NONE, AT(_PyInterpreterFrame, f_executable),
    AT(_PyInterpreterFrame, previous), AT(_PyInterpreterFrame, instr_ptr),
#else
    AT(PyThreadState, cframe), AT(_PyCFrame, current_frame), AT(_PyInterpreterFrame, f_code),
    AT(_PyInterpreterFrame, previous), AT(_PyInterpreterFrame, prev_instr),
#endif
    AT(_PyInterpreterFrame, owner), AT(_PyInterpreterFrame, localsplus),
    AT(PyCodeObject, co_qualname), AT(PyCodeObject, co_filename),
    AT(PyCodeObject, co_firstlineno), AT(PyCodeObject, co_linetable),
    AT(PyCodeObject, co_code_adaptive),
#else
    AT(PyInterpreterState, tstate_head), AT(PyThreadState, next), AT(PyThreadState, thread_id), NONE,
    AT(PyThreadState, frame), NONE, AT(PyFrameObject, f_code), AT(PyFrameObject, f_back),
    AT(PyFrameObject, f_lasti), NONE, AT(PyFrameObject, f_localsplus), AT(PyCodeObject, co_name), AT(PyCodeObject, co_filename),
    AT(PyCodeObject, co_firstlineno),
#if PY_VERSION_HEX >= 0x030a0000
    AT(PyCodeObject, co_linetable),
#else
    AT(PyCodeObject, co_lnotab),
#endif
    NONE,
#endif
    AT(PyASCIIObject, length), AT(PyASCIIObject, state), (long)sizeof(PyASCIIObject),
    (long)sizeof(PyCompactUnicodeObject), AT(PyVarObject, ob_size), AT(PyBytesObject, ob_sval)};
  for (size_t i = 0; i < sizeof row / sizeof row[0]; ++i) {
    printf(i == 0 ? "{" : ", ");
    if (i == 1) printf("%s, ", PY_MINOR_VERSION < 10 ? "kLnotab" : PY_MINOR_VERSION < 11 ? "kLinetable" : "kLocations");
    if (row[i] == NONE) printf("kNoField"); else printf("%ld", row[i]);
  }
  puts("},");
}
END
cc -w -I"$include" -o "$folder/layout" "$folder/layout.c"
"$folder/layout"

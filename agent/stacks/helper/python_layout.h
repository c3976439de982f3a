#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"

namespace rankrun::agent {

// How CPython stores the lines of a code object.
enum class PythonLineTable {
  kLnotab,     // to 3.9: Objects/lnotab_notes.txt
  kLinetable,  // 3.10: PEP 626
  kLocations,  // from 3.11 on: Objects/locations.md
};

// Offsets, in bytes, of the fields of CPython's objects that lead from _PyRuntime to the
// frames of each thread. kNoField: this version has no such field.
// Source: the internal headers of each version, by scripts/python_layout.sh.
constexpr uint64_t kNoField = UINT64_MAX;
struct PythonLayout {
  int minor;  // of 3.x
  PythonLineTable line_table;
  uint64_t runtime_interpreters;  // _PyRuntimeState.interpreters.head
  uint64_t interpreter_next;
  uint64_t interpreter_threads;  // newest thread state
  uint64_t thread_next;
  uint64_t thread_id;         // pthread_self()
  uint64_t thread_native_id;  // gettid()
  uint64_t thread_frame;      // the frame, or the _PyCFrame that has it
  uint64_t cframe_frame;      // in _PyCFrame
  uint64_t frame_code;
  uint64_t frame_previous;
  uint64_t frame_instruction;  // a number to 3.10, from then on a pointer
  uint64_t frame_owner;
  uint64_t frame_locals;  // first local variable; the arguments come first
  uint64_t code_name;     // the qualified one, if there is one
  uint64_t code_file;
  uint64_t code_first_line;
  uint64_t code_lines;
  uint64_t code_instructions;  // first one, to which the pointer is relative
  uint64_t text_length;
  uint64_t text_state;
  uint64_t ascii_size;    // of the header before the characters of an ASCII text
  uint64_t compact_size;  // likewise of other texts
  uint64_t bytes_size;
  uint64_t bytes_value;
};

// Returns the layout of CPython 3.`minor`: 3.8 to 3.13.
std::optional<PythonLayout> PythonLayoutOf(int minor);

// Bytes of _PyRuntime that PythonLayoutFrom reads.
constexpr size_t kDebugOffsetsBytes = 584;

// Reads the layout from _Py_DebugOffsets, with which _PyRuntime begins since 3.13.
// Errors: kNotFound if the bytes do not begin with its mark; kInvalid for a version or a build
// that is not known.
Result<PythonLayout> PythonLayoutFrom(std::span<const char> debug_offsets);

// Returns 11 for ".../libpython3.11.so.1.0", "/usr/bin/python3.11"; nothing for other names.
std::optional<int> PythonMinorOf(std::string_view path);

}  // namespace rankrun::agent

#include "agent/stacks/helper/python_layout.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

namespace rankrun::agent {
namespace {

using enum PythonLineTable;

// clang-format off
constexpr PythonLayout kLayouts[] = {
  // minor, lines, runtime, interpreter: next threads, thread: next id native frame, cframe,
  // frame: code previous instruction owner locals, code: name file first-line lines instructions,
  // text: length state ascii compact, bytes: size value
  {8, kLnotab, 32, 0, 8, 8, 176, kNoField, 24, kNoField,
   32, 24, 104, kNoField, 360, 112, 104, 40, 120, kNoField, 16, 32, 48, 72, 16, 32},
  {9, kLnotab, 32, 0, 8, 8, 176, kNoField, 24, kNoField,
   32, 24, 104, kNoField, 360, 112, 104, 40, 120, kNoField, 16, 32, 48, 72, 16, 32},
  {10, kLinetable, 32, 0, 8, 8, 176, kNoField, 24, kNoField,
   32, 24, 96, kNoField, 352, 112, 104, 40, 120, kNoField, 16, 32, 48, 72, 16, 32},
  {11, kLocations, 40, 0, 16, 8, 152, 160, 56, 8,
   32, 48, 56, 69, 72, 128, 112, 72, 136, 184, 16, 32, 48, 72, 16, 32},
  {12, kLocations, 40, 0, 72, 8, 136, 144, 56, 0,
   0, 8, 56, 70, 72, 128, 112, 68, 136, 192, 16, 32, 40, 56, 16, 32},
  {13, kLocations, 632, 7264, 7344, 8, 152, 160, 72, kNoField,
   0, 8, 56, 70, 72, 128, 112, 68, 136, 200, 16, 32, 40, 56, 16, 32},
};
// clang-format on

constexpr std::string_view kMark = "xdebugpy";
constexpr uint64_t kMinorShift = 16;  // in PY_VERSION_HEX
constexpr uint64_t kMaxOffset = 1 << 20;

// Positions of the offsets in _Py_DebugOffsets of 3.13.
struct Position {
  size_t at;
  uint64_t PythonLayout::*field;
};
constexpr Position kPositions13[] = {
    {40, &PythonLayout::runtime_interpreters}, {64, &PythonLayout::interpreter_next},
    {72, &PythonLayout::interpreter_threads},  {168, &PythonLayout::thread_next},
    {184, &PythonLayout::thread_frame},        {192, &PythonLayout::thread_id},
    {200, &PythonLayout::thread_native_id},    {232, &PythonLayout::frame_previous},
    {240, &PythonLayout::frame_code},          {248, &PythonLayout::frame_instruction},
    {256, &PythonLayout::frame_locals},        {264, &PythonLayout::frame_owner},
    {280, &PythonLayout::code_file},           {296, &PythonLayout::code_name},
    {304, &PythonLayout::code_lines},          {312, &PythonLayout::code_first_line},
    {344, &PythonLayout::code_instructions},   {520, &PythonLayout::bytes_size},
    {528, &PythonLayout::bytes_value},         {544, &PythonLayout::text_state},
    {552, &PythonLayout::text_length},         {560, &PythonLayout::ascii_size}};

uint64_t NumberAt(std::span<const char> bytes, size_t at) {
  uint64_t number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

Error Unknown(const std::string& version) {
  return {ErrorCode::kInvalid, "CPython " + version + " is not known"};
}

}  // namespace

std::optional<PythonLayout> PythonLayoutOf(int minor) {
  auto found = std::ranges::find(kLayouts, minor, &PythonLayout::minor);
  if (found == std::end(kLayouts)) return std::nullopt;
  return *found;
}

Result<PythonLayout> PythonLayoutFrom(std::span<const char> debug_offsets) {
  const bool has_mark = debug_offsets.size() >= kDebugOffsetsBytes &&
                        std::string_view(debug_offsets.data(), kMark.size()) == kMark;
  if (!has_mark) return Error{ErrorCode::kNotFound, "_PyRuntime begins without its offsets"};
  const uint64_t version = NumberAt(debug_offsets, 8);
  const int minor = static_cast<int>(version >> kMinorShift & 0xff);
  const std::string name = "3." + std::to_string(minor);
  if (version >> 24 != 3 || minor != 13) return Unknown(name);
  if (NumberAt(debug_offsets, 16) != 0) return Unknown(name + " without a global lock");
  PythonLayout layout = *PythonLayoutOf(minor);
  for (const Position& position : kPositions13) {
    const uint64_t offset = NumberAt(debug_offsets, position.at);
    if (offset > kMaxOffset) return Unknown(name + " with these offsets");
    layout.*position.field = offset;
  }
  layout.compact_size = layout.ascii_size + 2 * sizeof(uint64_t);
  return layout;
}

std::optional<int> PythonMinorOf(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (std::string_view prefix : {"libpython3.", "python3."}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = name.substr(prefix.size());
    int minor = 0;
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), minor);
    if (error == std::errc()) return minor;
  }
  return std::nullopt;
}

}  // namespace rankrun::agent

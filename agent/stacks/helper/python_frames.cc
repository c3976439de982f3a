#include "agent/stacks/helper/python_frames.h"

#include <algorithm>
#include <set>

#include "agent/stacks/helper/python_lines.h"

namespace rankrun::agent {
namespace {

constexpr int kMaxInterpreters = 16;
constexpr size_t kFrameBytes = 112;         // all fields of a frame that are read
constexpr size_t kMaxTableBytes = 1 << 16;  // of lines
// Owner of a frame that the C code of the interpreter has put between two others.
constexpr unsigned char kOwnedByCStack = 3;

template <typename Value>
Value Field(std::span<const char> bytes, uint64_t at) {
  Value value{};
  if (at <= bytes.size() - sizeof value) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

void AppendUtf8(std::string& text, uint32_t character) {
  constexpr uint32_t kLast = 0x10ffff;
  if (character > kLast) character = '?';
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xc0 | character >> 6);
    text += static_cast<char>(0x80 | (character & 0x3f));
  } else if (character < 0x10000) {
    text += static_cast<char>(0xe0 | character >> 12);
    text += static_cast<char>(0x80 | (character >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (character & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | character >> 18);
    text += static_cast<char>(0x80 | (character >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (character >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (character & 0x3f));
  }
}

bool MakesStore(const StackFrame& frame) {
  return frame.function == "_create_c10d_store" &&
         frame.file.ends_with("/torch/distributed/rendezvous.py");
}

}  // namespace

std::string Utf8Of(std::span<const char> characters, int width) {
  constexpr size_t kMaxCharacterBytes = 4;  // bytes of one character
  std::string text;
  const auto step = static_cast<size_t>(width);
  for (size_t at = 0; at + step <= characters.size(); at += step) {
    if (text.size() + kMaxCharacterBytes > kMaxStackText) break;
    uint32_t character = 0;
    std::memcpy(&character, characters.data() + at, step);  // little endian, as all of our CPUs
    AppendUtf8(text, character);
  }
  return text;
}

std::vector<PythonThread> PythonReader::Read(uint64_t runtime) {
  std::vector<PythonThread> threads;
  uint64_t interpreter = memory_.Get<uint64_t>(runtime + layout_.runtime_interpreters).value_or(0);
  for (int i = 0; i < kMaxInterpreters && interpreter != 0; ++i) {
    uint64_t thread = memory_.Get<uint64_t>(interpreter + layout_.interpreter_threads).value_or(0);
    while (thread != 0 && threads.size() < kMaxStackThreads && !is_late_()) {
      threads.push_back(ReadThread(thread));
      thread = memory_.Get<uint64_t>(thread + layout_.thread_next).value_or(0);
    }
    interpreter = memory_.Get<uint64_t>(interpreter + layout_.interpreter_next).value_or(0);
  }
  return threads;
}

PythonThread PythonReader::ReadThread(uint64_t thread) {
  PythonThread result{.id = memory_.Get<uint64_t>(thread + layout_.thread_id).value_or(0)};
  if (layout_.thread_native_id != kNoField) {
    const auto id = memory_.Get<uint64_t>(thread + layout_.thread_native_id).value_or(0);
    result.native_id = static_cast<pid_t>(id);
  }
  uint64_t frame = memory_.Get<uint64_t>(thread + layout_.thread_frame).value_or(0);
  if (frame != 0 && layout_.cframe_frame != kNoField) {
    frame = memory_.Get<uint64_t>(frame + layout_.cframe_frame).value_or(0);
  }
  result.frames = ReadFrames(frame);
  return result;
}

std::vector<StackFrame> PythonReader::ReadFrames(uint64_t frame) {
  std::vector<StackFrame> frames;
  std::set<uint64_t> seen;
  while (frame != 0 && seen.insert(frame).second && !is_late_()) {
    if (frames.size() == kMaxStackFrames || seen.size() > 2 * kMaxStackFrames) break;
    char bytes[kFrameBytes];
    if (!memory_.Read(frame, bytes)) break;
    if (auto read = ReadFrame(frame, bytes)) frames.push_back(*std::move(read));
    frame = Field<uint64_t>(bytes, layout_.frame_previous);
  }
  return frames;
}

std::optional<StackFrame> PythonReader::ReadFrame(uint64_t address, std::span<const char> frame) {
  const bool has_owner = layout_.frame_owner != kNoField;
  if (has_owner && Field<unsigned char>(frame, layout_.frame_owner) == kOwnedByCStack) {
    return std::nullopt;
  }
  const auto code_address = Field<uint64_t>(frame, layout_.frame_code);
  const Code& code = CodeAt(code_address);
  if (code.frame.function.empty() && code.frame.file.empty()) return std::nullopt;
  StackFrame result = code.frame;
  result.line = LineOf(code, code_address, frame);
  if (MakesStore(result)) result.address = StoreAddress(address);
  return result;
}

// Its first arguments are the name of a host and a port.
std::string PythonReader::StoreAddress(uint64_t frame) const {
  constexpr uint64_t kDigits = 24;  // of an int, whose header has been as long since 3.8
  constexpr uint32_t kMaxPort = 65535;
  const auto host = memory_.Get<uint64_t>(frame + layout_.frame_locals).value_or(0);
  const auto port = memory_.Get<uint64_t>(frame + layout_.frame_locals + 8).value_or(0);
  const std::string name = TextAt(host);
  const auto number = port != 0 ? memory_.Get<uint32_t>(port + kDigits).value_or(0) : 0;
  if (name.empty() || number == 0 || number > kMaxPort) return "";
  const bool is_v6 = name.find(':') != std::string::npos;
  return (is_v6 ? "[" + name + "]" : name) + ":" + std::to_string(number);
}

const PythonReader::Code& PythonReader::CodeAt(uint64_t address) {
  auto [found, is_new] = codes_.try_emplace(address);
  Code& code = found->second;
  if (!is_new || address == 0) return code;
  auto pointer = [&](uint64_t field) { return memory_.Get<uint64_t>(address + field).value_or(0); };
  code.frame.function = TextAt(pointer(layout_.code_name));
  code.frame.file = TextAt(pointer(layout_.code_file));
  code.first_line = memory_.Get<int>(address + layout_.code_first_line).value_or(0);
  code.lines = pointer(layout_.code_lines);
  return code;
}

int PythonReader::LineOf(const Code& code, uint64_t address, std::span<const char> frame) const {
  const auto size = memory_.Get<uint64_t>(code.lines + layout_.bytes_size).value_or(0);
  std::string table(std::min<uint64_t>(size, kMaxTableBytes), '\0');
  table.resize(memory_.ReadSome(code.lines + layout_.bytes_value, table));
  int64_t offset;
  if (layout_.code_instructions != kNoField) {
    const auto instruction = Field<uint64_t>(frame, layout_.frame_instruction);
    offset = static_cast<int64_t>(instruction - (address + layout_.code_instructions));
  } else {
    offset = Field<int>(frame, layout_.frame_instruction);
    constexpr int kUnitBytes = 2;
    if (layout_.line_table == PythonLineTable::kLinetable) offset *= kUnitBytes;
  }
  return PythonLineAt(layout_.line_table, table, code.first_line, offset);
}

std::string PythonReader::TextAt(uint64_t address) const {
  // Bits of PyASCIIObject.state, the same from 3.8 to 3.13.
  constexpr uint32_t kKindShift = 2;
  constexpr uint32_t kKind = 7;
  constexpr uint32_t kCompact = 0x20;
  constexpr uint32_t kAscii = 0x40;
  if (address == 0) return "";
  const auto length = memory_.Get<uint64_t>(address + layout_.text_length).value_or(0);
  const auto state = memory_.Get<uint32_t>(address + layout_.text_state).value_or(0);
  const int width = static_cast<int>(state >> kKindShift & kKind);
  const bool is_known = (state & kCompact) != 0 && (width == 1 || width == 2 || width == 4);
  if (!is_known) return "";
  const bool is_ascii = (state & kAscii) != 0;
  const uint64_t size = std::min<uint64_t>(length, kMaxStackText) * static_cast<uint64_t>(width);
  std::string characters(size, '\0');
  const uint64_t header = is_ascii ? layout_.ascii_size : layout_.compact_size;
  if (!memory_.Read(address + header, characters)) return "";
  return Utf8Of(characters, width);
}

}  // namespace rankrun::agent

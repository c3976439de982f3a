#include "agent/stacks/helper/python_lines.h"

#include <climits>

namespace rankrun::agent {
namespace {

int64_t LineOfLnotab(std::span<const char> table, int64_t line, int64_t offset) {
  int64_t address = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    address += static_cast<unsigned char>(table[i]);
    if (address > offset) break;
    line += static_cast<signed char>(table[i + 1]);
  }
  return line;
}

int64_t LineOfLinetable(std::span<const char> table, int64_t line, int64_t offset) {
  constexpr signed char kNoLine = -128;
  int64_t address = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    address += static_cast<unsigned char>(table[i]);
    const auto delta = static_cast<signed char>(table[i + 1]);
    if (delta != kNoLine) line += delta;
    if (offset < address) return delta == kNoLine ? 0 : line;
  }
  return 0;
}

// Reader of the table since 3.11, whose entries have different lengths.
class Locations {
 public:
  explicit Locations(std::span<const char> table) : table_(table) {}

  bool is_at_end() const { return at_ >= table_.size(); }
  unsigned Byte() { return is_at_end() ? 0 : static_cast<unsigned char>(table_[at_++]); }
  void Skip(size_t count) { at_ += count; }

  // Reads a number of 6 bits per byte, the lowest first.
  uint32_t Unsigned() {
    constexpr unsigned kMore = 0x40;
    uint32_t value = 0;
    unsigned byte = kMore;
    for (unsigned shift = 0; (byte & kMore) != 0 && shift < 32; shift += 6) {
      byte = Byte();
      value |= (byte & 0x3f) << shift;
    }
    return value;
  }
  int64_t Signed() {
    const uint32_t value = Unsigned();
    const int64_t magnitude = value >> 1;
    return (value & 1) != 0 ? -magnitude : magnitude;
  }

 private:
  std::span<const char> table_;
  size_t at_ = 0;
};

// Reads the rest of an entry after its first byte. Returns whether its instructions have a
// line; changes `line` by the entry's difference.
bool ReadLocation(Locations& table, unsigned code, int64_t& line) {
  constexpr unsigned kFirstOneLine = 10;
  constexpr unsigned kNoColumns = 13;
  constexpr unsigned kLong = 14;
  constexpr unsigned kNone = 15;
  switch (code) {
    case kNone:
      return false;
    case kLong:
      line += table.Signed();
      for (int i = 0; i < 3; ++i) table.Unsigned();
      return true;
    case kNoColumns:
      line += table.Signed();
      return true;
    default:
      if (code >= kFirstOneLine) line += static_cast<int>(code - kFirstOneLine);
      table.Skip(code >= kFirstOneLine ? 2 : 1);
      return true;
  }
}

int64_t LineOfLocations(std::span<const char> bytes, int64_t line, int64_t offset) {
  constexpr int64_t kUnitBytes = 2;
  Locations table(bytes);
  int64_t address = 0;
  while (!table.is_at_end()) {
    const unsigned first = table.Byte();
    const bool has_line = ReadLocation(table, first >> 3 & 0xf, line);
    address += kUnitBytes * ((first & 7) + 1);
    if (offset < address) return has_line ? line : 0;
  }
  return 0;
}

int64_t LineOf(PythonLineTable kind, std::span<const char> table, int64_t line, int64_t offset) {
  switch (kind) {
    case PythonLineTable::kLnotab:
      return LineOfLnotab(table, line, offset);
    case PythonLineTable::kLinetable:
      return LineOfLinetable(table, line, offset);
    case PythonLineTable::kLocations:
      return LineOfLocations(table, line, offset);
  }
  __builtin_unreachable();
}

}  // namespace

int PythonLineAt(PythonLineTable kind, std::span<const char> table, int first_line,
                 int64_t offset) {
  if (offset < 0) return first_line;  // not yet begun
  const int64_t line = LineOf(kind, table, first_line, offset);
  return line < 0 || line > INT_MAX ? 0 : static_cast<int>(line);
}

}  // namespace rankrun::agent

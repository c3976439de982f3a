#include "base/printable.h"

#include <algorithm>
#include <cstdint>

namespace rankrun {
namespace {

// One character, or one byte that is not part of any.
struct Piece {
  size_t bytes = 1;
  uint32_t character = 0;
  bool valid = false;
};

// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
Piece FirstPiece(std::string_view text) {
  constexpr uint32_t kMin[] = {0, 0, 0x80, 0x800, 0x10000};
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {.bytes = 1, .character = byte(0), .valid = true};
  size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc0 ? 2 : 0;
  if (length == 0 || byte(0) > 0xf4 || text.size() < length) return {};
  uint32_t character = byte(0) & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    character = character << 6 | (byte(i) & 0x3fU);
  }
  bool surrogate = character >= 0xd800 && character <= 0xdfff;
  if (character < kMin[length] || character > 0x10ffff || surrogate) return {};
  return {.bytes = length, .character = character, .valid = true};
}

bool IsShown(const Piece& piece) {
  uint32_t c = piece.character;
  bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  bool turns = c == 0x61c || (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
               (c >= 0x2066 && c <= 0x2069);
  return piece.valid && !control && !turns;
}

enum class Style {
  kUnambiguous,
  kOneLine,
  kLines,
};

std::string Shown(std::string_view bytes, const Piece& piece, Style style) {
  if (style == Style::kUnambiguous && bytes == "\\") return "\\\\";
  if (style != Style::kUnambiguous && bytes == "\t") return "\t";
  // A lone "\r" begins a progress bar again.
  if (style == Style::kLines && (bytes == "\n" || bytes == "\r")) return "\n";
  if (IsShown(piece)) return std::string(bytes);
  if (bytes == "\n") return "\\n";
  if (bytes == "\t") return "\\t";
  if (bytes == "\r") return "\\r";
  std::string text;
  for (char c : bytes) text += "\\x" + Hex({&c, 1});
  return text;
}

constexpr size_t kNoWidth = SIZE_MAX;
constexpr std::string_view kCut = "...";

// Stops as soon as the text is wider than `width`, and then ends it with kCut.
std::string Escape(std::string_view bytes, Style style, size_t width) {
  std::string text;
  size_t taken = 0;          // characters in text
  size_t fits_in_bytes = 0;  // bytes of `text` that leave room for kCut
  while (!bytes.empty()) {
    Piece piece = FirstPiece(bytes);
    std::string shown = Shown(bytes.substr(0, piece.bytes), piece, style);
    taken += IsShown(piece) && shown.size() == piece.bytes ? 1 : shown.size();
    text += shown;
    if (width == kNoWidth || taken + kCut.size() <= width) fits_in_bytes = text.size();
    if (taken > width) return text.substr(0, fits_in_bytes) + std::string(kCut);
    bytes.remove_prefix(piece.bytes);
  }
  return text;
}

}  // namespace

std::string Escaped(std::string_view bytes) { return Escape(bytes, Style::kUnambiguous, kNoWidth); }

std::string EscapedAndCut(std::string_view bytes, size_t width) {
  return Escape(bytes, Style::kUnambiguous, width);
}

std::string OneLine(std::string_view bytes, size_t width) {
  return Escape(bytes, Style::kOneLine, width);
}

std::string Lines(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find("\r\n"), bytes.size());
    text += Escape(bytes.substr(0, end), Style::kLines, kNoWidth);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));  // leaves "\n"
  }
  return text;
}

size_t IncompleteEnd(std::string_view bytes) {
  if (bytes.ends_with('\r')) return 1;
  constexpr size_t kMaxBytes = 4;
  for (size_t size = 1; size < kMaxBytes && size <= bytes.size(); ++size) {
    const auto first = static_cast<unsigned char>(bytes[bytes.size() - size]);
    if (first >= 0xc0) {
      const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
      return length > size ? size : 0;
    }
    if (first < 0x80) return 0;
  }
  return 0;
}

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    Piece piece = FirstPiece(bytes);
    if (!piece.valid) return false;
    bytes.remove_prefix(piece.bytes);
  }
  return true;
}

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (char c : bytes) {
    auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4], kDigits[byte & 15]};
  }
  return text;
}

}  // namespace rankrun

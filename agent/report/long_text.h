#pragma once

#include <string.h>

#include <string>
#include <string_view>

// Replacements for functions of the standard library that are slow on the last 64 KiB of an output.
// Pure.
namespace rankrun::agent {

// Longest line that is searched; a longer one keeps its first and its last half of this.
constexpr size_t kMaxLine = 4096;

inline std::string WithoutMiddle(std::string line) {
  if (line.size() > kMaxLine) line.erase(kMaxLine / 2, line.size() - kMaxLine);
  return line;
}

// Converts the letters of ASCII.
inline std::string Lowercase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower;
}

// As text.rfind(part).
inline size_t FindLast(std::string_view text, std::string_view part) {
  if (part.empty()) return text.size();
  for (size_t end = text.size(); end > 0;) {
    const void* first = memrchr(text.data(), part.front(), end);
    if (first == nullptr) break;
    end = static_cast<size_t>(static_cast<const char*>(first) - text.data());
    if (text.substr(end).starts_with(part)) return end;
  }
  return text.npos;
}

}  // namespace rankrun::agent

#pragma once

#include <string.h>

#include <string>
#include <string_view>

// Functions of the standard library that are slow for the last 64 KiB of an output. Pure.
namespace rankrun::agent {

// Converts the letters of ASCII.
inline std::string Lowercase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return lower;
}

// Returns where `part`, which is not empty, begins for the last time; npos if it does not.
inline size_t FindLast(std::string_view text, std::string_view part) {
  for (size_t end = text.size(); end > 0;) {
    const void* first = memrchr(text.data(), part.front(), end);
    if (first == nullptr) break;
    end = static_cast<size_t>(static_cast<const char*>(first) - text.data());
    if (text.substr(end).starts_with(part)) return end;
  }
  return text.npos;
}

}  // namespace rankrun::agent

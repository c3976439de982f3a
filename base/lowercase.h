#pragma once

#include <string>

namespace rankrun {

// Letters of ASCII only. Fast on a long text. Pure.
inline std::string Lowercase(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace rankrun

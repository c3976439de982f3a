#pragma once

#include <string.h>

#include <string_view>

namespace rankrun {

// As text.rfind(part), which compares at each position and is slow on a long text. Pure.
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

}  // namespace rankrun

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// Opcodes that make values of a pickle, for tests.
namespace rankrun::agent::pickled {

template <typename T>
std::string Bytes(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}
inline std::string Text(const std::string& text) {
  return "X" + Bytes(static_cast<uint32_t>(text.size())) + text;
}
inline std::string Int(int64_t number) { return "\x8a\x08" + Bytes(number); }
inline std::string Bool(bool value) { return value ? "\x88" : "\x89"; }
inline std::string Tuple(const std::string& first, const std::string& second) {
  return first + second + "\x86";
}
inline std::string List(const std::vector<std::string>& items) {
  std::string list = "](";
  for (const std::string& item : items) list += item;
  return list + "e";
}
inline std::string Dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string dict = "}(";
  for (const auto& [key, value] : items) dict += Text(key) + value;
  return dict + "u";
}
inline std::string Whole(const std::string& value) { return "\x80\x02" + value + "."; }

}  // namespace rankrun::agent::pickled

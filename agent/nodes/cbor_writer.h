#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rankrun::agent::cbor {

using Json = nlohmann::json;

constexpr size_t kMaxTextBytes = 4096;
// Limit of the entries of a list. The longest are those of the store's allowlist.
constexpr size_t kMaxListEntries = size_t{1} << 16;

// Writes the fields of a structure. Use it through cbor_fields.h.
class Writer {
 public:
  template <typename T>
  void operator()(const char* name, T& value) {
    json_[name] = ToJson(value);
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (value) json_[name] = ToJson(*value);
  }
  void Bytes(const char* name, std::string& value) { json_[name] = value; }
  void Bytes(const char* name, std::optional<std::string>& value) {
    if (value) json_[name] = *value;
  }

  template <typename T>
  static Json ToJson(T& value) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<int>(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      return value.substr(0, kMaxTextBytes);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else {
      Writer writer;
      Fields(writer, value);
      return std::move(writer.json_);
    }
  }
  template <typename T>
  static Json ToJson(std::vector<T>& values) {
    Json array = Json::array();
    for (T& value : values) array.push_back(ToJson(value));
    return array;
  }

 private:
  Json json_ = Json::object();
};

}  // namespace rankrun::agent::cbor

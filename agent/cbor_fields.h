#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"

// Structures as CBOR maps, by one table for both directions:
//   template <typename F> void Fields(F& f, T& m) { f("name", m.name); ... }
// An optional that is empty is left out; a field that is not known is ignored.
// For .cc files only: the JSON library is large.
namespace rankrun::agent::cbor {

using Json = nlohmann::json;

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

  template <typename T>
  static Json ToJson(T& value) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<int>(value);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
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

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) Reject("a map", "message");
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    auto found = json_.is_object() ? json_.find(name) : json_.end();
    if (found == json_.end()) return Reject("a value", name);
    Take(*found, name, value);
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (!json_.is_object() || !json_.contains(name)) return;
    Take(json_.at(name), name, value.emplace());
  }

  const std::string& error() const { return error_; }

 private:
  void Reject(const char* want, const char* name) {
    if (error_.empty()) error_ = std::string("want ") + want + " as \"" + name + "\"";
  }

  void Take(const Json& json, const char* name, bool& value) {
    if (!json.is_boolean()) return Reject("true or false", name);
    value = json.get<bool>();
  }
  template <std::integral T>
  void Take(const Json& json, const char* name, T& value) {
    bool fits = json.is_number_unsigned()
                    ? std::in_range<T>(json.get<uint64_t>())
                    : json.is_number_integer() && std::in_range<T>(json.get<int64_t>());
    if (!fits) return Reject("a number in its range", name);
    value = json.get<T>();
  }
  void Take(const Json& json, const char* name, std::string& value) {
    if (!json.is_string()) return Reject("a text", name);
    value = json.get<std::string>();
  }
  // LastOf(T{}) is found beside its Fields.
  template <typename T>
  requires std::is_enum_v<T>
  void Take(const Json& json, const char* name, T& value) {
    int number = -1;
    Take(json, name, number);
    if (number < 0 || number > static_cast<int>(LastOf(T{}))) {
      return Reject("one of its values", name);
    }
    value = static_cast<T>(number);
  }
  template <typename T>
  void Take(const Json& json, const char* name, std::vector<T>& values) {
    if (!json.is_array()) return Reject("a list", name);
    for (const Json& item : json) Take(item, name, values.emplace_back());
  }
  template <typename T>
  requires std::is_class_v<T>
  void Take(const Json& json, const char*, T& value) {
    Reader reader(json);
    Fields(reader, value);
    if (error_.empty()) error_ = reader.error();
  }

  const Json& json_;
  std::string error_;
};

// Errors: kProtocol, for bytes that are no CBOR map, or one that nests too deep.
Result<Json> Parse(std::string_view bytes);

std::string Bytes(const Json& json);

template <typename T>
Result<T> Read(const Json& json) {
  T value{};
  Reader reader(json);
  Fields(reader, value);
  if (!reader.error().empty()) return Error{ErrorCode::kProtocol, reader.error()};
  return value;
}

}  // namespace rankrun::agent::cbor

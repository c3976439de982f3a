#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "agent/nodes/cbor_writer.h"
#include "base/printable.h"
#include "base/result.h"

// Converts structures to CBOR maps and back, by one table for both directions:
//   template <typename F> void Fields(F& f, T& m) { f("name", m.name); ... }
// Empty optionals are left out; unknown fields are ignored. Texts are for people:
// the writer cuts them to kMaxTextBytes, the reader refuses longer ones and
// makes them safe for a terminal. f.Bytes("name", m.name) is for other strings.
// Include this only in .cc files, because the JSON library is large.
namespace rankrun::agent::cbor {

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {
    if (!json.is_object()) Reject("a map", "message");
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    if (const Json* json = Find(name)) return Take(*json, name, value);
    Reject("a value", name);
  }
  template <typename T>
  void operator()(const char* name, std::optional<T>& value) {
    if (const Json* json = Find(name)) Take(*json, name, value.emplace());
  }
  void Bytes(const char* name, std::string& value) {
    if (const Json* json = Find(name)) return TakeBytes(*json, name, value);
    Reject("a value", name);
  }
  void Bytes(const char* name, std::optional<std::string>& value) {
    if (const Json* json = Find(name)) TakeBytes(*json, name, value.emplace());
  }

  const std::string& error() const { return error_; }

 private:
  // Returns null if there is no such field.
  const Json* Find(const char* name) const {
    auto found = json_.is_object() ? json_.find(name) : json_.end();
    return found == json_.end() ? nullptr : &*found;
  }

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
  void TakeBytes(const Json& json, const char* name, std::string& value) {
    if (!json.is_string()) return Reject("a text", name);
    value = json.get<std::string>();
  }
  void Take(const Json& json, const char* name, std::string& value) {
    TakeBytes(json, name, value);
    if (value.size() > kMaxTextBytes) return Reject("at most 4096 bytes", name);
    value = OneLine(value);
  }
  // LastOf(T{}) must be declared next to Fields of T.
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
    if (json.size() > kMaxListEntries) return Reject("at most 65536 entries", name);
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

template <typename T>
Result<T> Read(const Json& json) {
  T value{};
  Reader reader(json);
  Fields(reader, value);
  if (!reader.error().empty()) return Error{ErrorCode::kProtocol, reader.error()};
  return value;
}

}  // namespace rankrun::agent::cbor

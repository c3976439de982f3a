#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <rankrun/cbor.h>
#include <rankrun/dist_error.h>
#include <rankrun/rpc/payload.h>
#include <rankrun/rpc/rref.h>

// Values of a program as payloads: CBOR, tensors as attachments, references as such. Types:
// those that nlohmann::json converts, also by the program's to_json and from_json;
// TensorValue; RRef; std::vector of these two.
namespace rankrun::rpc {

namespace internal {

using Json = nlohmann::json;

// Collects values into a payload.
class ValueWriter {
 public:
  template <typename T>
  Json Add(const T& value) {
    return Json(value);
  }
  Json Add(const TensorValue& tensor) {
    payload_.attachments.push_back(tensor.data);
    return {{"tensor", payload_.attachments.size() - 1},
            {"dtype", static_cast<int>(tensor.dtype)},
            {"shape", tensor.shape}};
  }
  template <typename T>
  Json Add(const RRef<T>& value) {
    payload_.references.push_back(value.reference());
    return {{"reference", payload_.references.size() - 1}};
  }
  Json Add(const std::vector<TensorValue>& tensors) { return AddEach(tensors); }
  template <typename T>
  Json Add(const std::vector<RRef<T>>& values) {
    return AddEach(values);
  }
  Payload Finish(const Json& values) {
    std::vector<uint8_t> cbor = Json::to_cbor(values);
    payload_.bytes.assign(reinterpret_cast<const char*>(cbor.data()), cbor.size());
    return std::move(payload_);
  }

 private:
  template <typename T>
  Json AddEach(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(Add(value));
    return list;
  }

  Payload payload_;
};

template <typename T>
struct ValueReader {
  static T Read(const Json& json, const Payload&) { return json.get<T>(); }
};
template <>
struct ValueReader<TensorValue> {
  static TensorValue Read(const Json& json, const Payload& payload) {
    return {.dtype = static_cast<DType>(json.at("dtype").get<int>()),
            .shape = json.at("shape").get<std::vector<int64_t>>(),
            .data = payload.attachments.at(json.at("tensor").get<size_t>())};
  }
};
template <typename T>
struct ValueReader<RRef<T>> {
  static RRef<T> Read(const Json& json, const Payload& payload) {
    return RRef<T>(payload.references.at(json.at("reference").get<size_t>()));
  }
};
template <typename T>
requires std::is_same_v<T, TensorValue> || requires(const T& value) { value.reference(); }
struct ValueReader<std::vector<T>> {
  static std::vector<T> Read(const Json& json, const Payload& payload) {
    std::vector<T> values;
    for (const Json& each : json) values.push_back(ValueReader<T>::Read(each, payload));
    return values;
  }
};

inline Json JsonIn(const Payload& payload) {
  return FromCbor<Json>(std::as_bytes(std::span(payload.bytes)));
}

// Calls `read`; errors of the conversion become a DistError that begins with `what`.
template <typename Read>
auto Converted(const std::string& what, Read read) -> decltype(read()) {
  try {
    return read();
  } catch (const Json::exception& error) {
    throw DistError(what + ": " + error.what());
  } catch (const std::out_of_range&) {
    throw DistError(what + ": an attachment or a reference is missing");
  }
}

template <typename T>
Payload Written(const T& value) {
  ValueWriter writer;
  Json json = writer.Add(value);
  return writer.Finish(json);
}

template <typename T>
T ResultIn(const std::string& method, const Payload& payload) {
  return Converted("result of " + method,
                   [&] { return ValueReader<T>::Read(JsonIn(payload), payload); });
}

template <typename... Args>
Payload ArgumentsOf(const Args&... args) {
  ValueWriter writer;
  Json list = Json::array();
  (list.push_back(writer.Add(args)), ...);
  return writer.Finish(list);
}

}  // namespace internal

template <typename T>
T RRef<T>::ToHere(Timeout timeout) const {
  return internal::ResultIn<T>("a remote value", reference_.ToHere(timeout));
}

}  // namespace rankrun::rpc

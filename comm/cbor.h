#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <rankrun/dist_error.h>
#include <rankrun/objects.h>

// Values as CBOR (RFC 8949), which programs in other languages read, too, for
// the collectives of objects. `Json` is nlohmann::json or another basic_json of
// nlohmann/json 3, which the program includes; the library does not need it.
namespace rankrun {

// Bytes that came from another rank are no CBOR, or none that is taken here:
// the text says of which rank, at which byte and why.
class DistCodecError : public DistError {
 public:
  using DistError::DistError;
};

// Arrays and maps within each other: a parser calls itself for each level.
inline constexpr int kMaxCborDepth = 64;

namespace internal {

// Builds nothing: finds what is wrong before anything is built.
template <typename Json>
class CborCheck {
 public:
  const std::string& problem() const { return problem_; }

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(typename Json::number_integer_t) { return true; }
  bool number_unsigned(typename Json::number_unsigned_t) { return true; }
  bool number_float(typename Json::number_float_t, const typename Json::string_t&) { return true; }
  bool string(typename Json::string_t&) { return true; }
  bool binary(typename Json::binary_t&) { return true; }
  bool key(typename Json::string_t&) { return true; }
  bool start_object(std::size_t) { return Enter(); }
  bool end_object() { return Leave(); }
  bool start_array(std::size_t) { return Enter(); }
  bool end_array() { return Leave(); }
  bool parse_error(std::size_t, const std::string&, const typename Json::exception& error) {
    const std::string what = error.what();  // "[...] parse error at byte 3: <why>"
    const std::size_t place = what.find("at byte ");
    problem_ = place == std::string::npos ? what : what.substr(place);
    return false;
  }

 private:
  bool Enter() {
    if (++depth_ <= kMaxCborDepth) return true;
    problem_ = "more than " + std::to_string(kMaxCborDepth) + " arrays and maps within each other";
    return false;
  }
  bool Leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::string problem_;
};

}  // namespace internal

template <typename Json>
Object ToCbor(const Json& value) {
  const std::vector<uint8_t> cbor = Json::to_cbor(value);
  const auto* bytes = reinterpret_cast<const std::byte*>(cbor.data());
  return {bytes, bytes + cbor.size()};
}

// Keys of maps are texts. `from_rank`: who has sent it, for the error.
// Errors: DistCodecError.
template <typename Json>
Json FromCbor(std::span<const std::byte> object, std::optional<int> from_rank = {}) {
  const auto* begin = reinterpret_cast<const uint8_t*>(object.data());
  const auto* end = begin + object.size();
  internal::CborCheck<Json> check;
  if (!Json::sax_parse(begin, end, &check, Json::input_format_t::cbor)) {
    const std::string whose = from_rank ? " of rank " + std::to_string(*from_rank) : "";
    throw DistCodecError("object" + whose + " is no CBOR that can be read: " + check.problem());
  }
  return Json::from_cbor(begin, end);
}

}  // namespace rankrun

#include "base/net/address_range.h"

#include <netinet/in.h>

#include "base/parse_number.h"

namespace rankrun {
namespace {

constexpr size_t kAllBits = 8 * sizeof(AddressBytes);
constexpr size_t kIpv4Bits = 32;

bool BitAt(const AddressBytes& bytes, size_t bit) {
  return (bytes[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

bool HasBitsFrom(const AddressBytes& bytes, size_t bit) {
  for (; bit < kAllBits; ++bit) {
    if (BitAt(bytes, bit)) return true;
  }
  return false;
}

Error NoRange(const std::string& text, const std::string& why) {
  return Error{ErrorCode::kInvalid, "\"" + text + "\" is not a range of addresses: " + why +
                                        "; want for example 10.0.0.0/8, fd00::/8 or 10.0.0.7"};
}

}  // namespace

Result<AddressRange> AddressRange::Parse(const std::string& text) {
  size_t slash = text.find('/');
  auto address = SocketAddress::FromNumeric(text.substr(0, slash), 0);
  if (!address) return NoRange(text, address.error().message);
  AddressRange range;
  range.first_ = address->Bytes();
  range.prefix_bits_ = kAllBits;
  if (slash == std::string::npos) return range;

  size_t own_bits = address->family() == AF_INET ? kIpv4Bits : kAllBits;
  auto bits = ParseNumber<size_t>(std::string_view(text).substr(slash + 1));
  if (!bits || *bits > own_bits) {
    return NoRange(text, "after the / must follow a number from 0 to " + std::to_string(own_bits));
  }
  range.prefix_bits_ = kAllBits - own_bits + *bits;
  if (HasBitsFrom(range.first_, range.prefix_bits_)) {
    return NoRange(text, "the address has bits set after its first " + std::to_string(*bits));
  }
  return range;
}

bool AddressRange::Contains(const SocketAddress& address) const {
  AddressBytes bytes = address.Bytes();
  size_t whole = prefix_bits_ / 8;
  for (size_t i = 0; i < whole; ++i) {
    if (bytes[i] != first_[i]) return false;
  }
  for (size_t bit = 8 * whole; bit < prefix_bits_; ++bit) {
    if (BitAt(bytes, bit) != BitAt(first_, bit)) return false;
  }
  return true;
}

}  // namespace rankrun

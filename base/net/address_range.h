#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/net/socket_address.h"
#include "base/result.h"

namespace rankrun {

// Addresses with a common prefix ("10.0.0.0/8", "fd00::/8"), or a single
// address ("10.0.0.7"). An IPv4 address equals the IPv6 address that it is
// mapped to. Ports and scopes are ignored. A value.
class AddressRange {
 public:
  // Errors: kInvalid, also if bits after the prefix are set, because 10.0.0.7/8
  // may mean the range or the address.
  static Result<AddressRange> Parse(const std::string& text);

  bool Contains(const SocketAddress& address) const;

  bool is_single() const { return prefix_bits_ == 8 * sizeof(AddressBytes); }
  const AddressBytes& first() const { return first_; }

 private:
  AddressBytes first_{};
  size_t prefix_bits_ = 0;  // of 128
};

}  // namespace rankrun

#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/socket_address.h"

namespace rankrun {

// Addresses with a common prefix: "10.0.0.0/8", "fd00::/8", or a single one,
// "10.0.0.7". An IPv4 address and the IPv6 address that it is mapped to are
// the same. Ports and scopes do not count. A value.
class AddressRange {
 public:
  // Errors: kInvalid, also when bits are set behind the prefix: whoever writes
  // 10.0.0.7/8 may mean either.
  static Result<AddressRange> Parse(const std::string& text);

  bool Contains(const SocketAddress& address) const;

  bool is_single() const { return prefix_bits_ == 8 * sizeof(AddressBytes); }
  const AddressBytes& first() const { return first_; }

 private:
  AddressBytes first_{};
  size_t prefix_bits_ = 0;  // of 128
};

}  // namespace rankrun

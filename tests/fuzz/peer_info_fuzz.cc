// Addresses that a rank publishes for Gloo. The first byte of the input selects the
// ranks.

#include "comm/gloo/peer_info.h"
#include "tests/fuzz/check_input.h"

namespace rankrun::test {

std::string CheckInput(std::string_view input) {
  if (input.empty()) return "";
  int ranks = 2 + (input[0] & 7), owner = (input[0] >> 3 & 7) % ranks;
  int reader = (owner + 1) % ranks;
  auto info = comm::gloo::DecodePeerInfo(std::string(input.substr(1)), owner, reader, ranks);
  if (!info) return "";
  if (info->secret.size() != comm::gloo::kSecretBytes) return "a secret has another size";
  return info->addresses.contains(reader) ? "" : "the reader's address is missing";
}

}  // namespace rankrun::test

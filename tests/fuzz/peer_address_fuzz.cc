// Address that a rank publishes for the built-in TCP backend.

#include "comm/tcp/peer_address.h"
#include "tests/fuzz/check_input.h"

namespace rankrun::test {

std::string CheckInput(std::string_view input) {
  auto address = comm::tcp::DecodePeerAddress(input);
  if (!address) return address.error().message.empty() ? "an error has no text" : "";
  return comm::tcp::Encode(*address) == input ? "" : "the text changes when it is encoded again";
}

}  // namespace rankrun::test

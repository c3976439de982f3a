#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "bench/store/store_load.h"
#include "bench/store/store_peers.h"

namespace rankrun::bench {

// Requests of one connection of a load, and the expected replies. Each
// connection has its own key and value, so that misdirected replies are
// detected.
class Traffic {
 public:
  Traffic(const LoadOptions& options, size_t peer);

  // Returns the greeting, which also creates the key.
  Greeting greeting() const;

  // Requests of one send, and the number that it counts for.
  const std::string& batch() const { return batch_; }
  size_t batch_requests() const { return batch_requests_; }

  // Consumes received bytes of the batch's replies. Returns whether the replies
  // are complete.
  // Errors: kProtocol for a wrong reply.
  Result<bool> Take(std::string_view bytes);

 private:
  const size_t peer_;
  const bool echo_;
  const bool counts_;  // each reply is one larger than the last
  std::string key_;
  std::string value_;
  std::string batch_;
  size_t batch_requests_ = 0;
  size_t batch_replies_ = 0;
  std::string reply_;   // expected reply
  int64_t sum_ = 0;     // sum in the expected reply, if counts_
  size_t taken_ = 0;    // matched bytes of the expected reply
  size_t replies_ = 0;  // complete replies of the batch
};

}  // namespace rankrun::bench

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "bench/store_load.h"
#include "bench/store_peers.h"

namespace rankrun::bench {

// What one connection of a load says, and what it must be told. Each has a key
// and a value of its own, so that answers to others are noticed.
class Traffic {
 public:
  Traffic(const LoadOptions& options, size_t peer);

  // Begins the connection and makes the key.
  Greeting greeting() const;

  // What is sent at once, and how many requests that counts for.
  const std::string& batch() const { return batch_; }
  size_t batch_requests() const { return batch_requests_; }

  // Takes what has come of the batch's replies. Whether they are complete with
  // it. Errors: kProtocol, when it is not what must come.
  Result<bool> Take(std::string_view bytes);

 private:
  const size_t peer_;
  const bool echo_;
  const bool counts_;  // each reply is one more than the one before
  std::string key_;
  std::string value_;
  std::string batch_;
  size_t batch_requests_ = 0;
  size_t batch_replies_ = 0;
  std::string reply_;   // the one that is due
  int64_t sum_ = 0;     // in it, if it counts
  size_t taken_ = 0;    // bytes of it
  size_t replies_ = 0;  // of the batch, complete
};

}  // namespace rankrun::bench

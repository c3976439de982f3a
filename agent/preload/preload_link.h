#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace rankrun::agent {

// Connection to a preloader: packets of text, with descriptors on the way there.
// Thread: one at a time.
class PreloadLink {
 public:
  // Connects `theirs`, the end of the preloader. Errors: those of SystemError.
  static Result<PreloadLink> Open(Fd& theirs);

  PreloadLink() = default;  // no connection
  explicit operator bool() const { return static_cast<bool>(socket_); }

  // Sends a packet. Errors: kPeerLost, if the preloader has ended; those of SystemError.
  Result<void> Send(std::string_view text, const std::vector<int>& descriptors = {});

  // Waits for a packet, until `interrupt` is readable or the deadline.
  // Errors: kPeerLost, if the preloader has ended; kCancelled, kTimeout; those of SystemError.
  Result<std::string> Receive(TimePoint deadline, int interrupt = Fd::kNone);

 private:
  explicit PreloadLink(Fd socket) : socket_(std::move(socket)) {}

  Fd socket_;
};

}  // namespace rankrun::agent

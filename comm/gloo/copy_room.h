#pragma once

#include <cstddef>
#include <vector>

#include "comm/gloo/control.h"

namespace rankrun::comm::gloo {

// Room for copies of short messages, which are sent without waiting for their
// receive. Pure.
class CopyRoom {
 public:
  explicit CopyRoom(size_t ranks) : used_(ranks) {}

  // Takes room for a copy to that rank. Returns false if the message is too long or
  // there is no room.
  bool Take(int peer, size_t bytes) {
    size_t& used = used_[static_cast<size_t>(peer)];
    if (bytes > kMaxBytes || used + Needed(bytes) > kRoom) return false;
    used += Needed(bytes);
    copies_ += 1;
    return true;
  }
  void Return(int peer, size_t bytes) {
    used_[static_cast<size_t>(peer)] -= Needed(bytes);
    copies_ -= 1;
  }

  size_t copies() const { return copies_; }
  // Returns those of `ranks`, by group rank, for which there are copies.
  std::vector<int> Receivers(const std::vector<int>& ranks) const {
    std::vector<int> receivers;
    for (size_t peer = 0; peer < used_.size(); ++peer) {
      if (used_[peer] > 0) receivers.push_back(ranks[peer]);
    }
    return receivers;
  }

 private:
  static constexpr size_t kMaxBytes = 64 << 10;  // bytes
  static constexpr size_t kRoom = 1 << 20;       // bytes for each receiver

  static size_t Needed(size_t bytes) { return bytes + sizeof(ControlMessage); }

  std::vector<size_t> used_;
  size_t copies_ = 0;
};

}  // namespace rankrun::comm::gloo

#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "comm/core/operation.h"
#include "comm/stream/frame.h"

namespace rankrun::comm::stream {

// The last collectives that this rank and its peers have called, as far as known.
// Thread: one at a time.
class CallTable {
 public:
  // `global_ranks`: by group rank; for texts.
  CallTable(std::vector<int> global_ranks, int rank);

  // Records a call of this rank. Returns whether it differs from one of a peer.
  bool Enter(const Operation& operation, uint64_t fingerprint);
  // Records a call of a peer. Returns whether it differs from that of this rank.
  bool Note(int peer, const FrameHeader& header);
  // Records that a frame of a collective of `peer` is not the one expected.
  void NoteDifference(int peer, const FrameHeader& header);

  uint64_t last() const { return last_; }  // number of this rank's last call; 0: none
  // Return null if it is not known.
  const FrameHeader* Own(uint64_t number) const;
  const FrameHeader* Of(int peer, uint64_t number) const;
  FrameHeader OwnLast() const { return own_[last_ % kCalls]; }
  // Returns the number of a call of a peer that differs from this rank's.
  std::optional<uint64_t> difference() const { return difference_; }
  // Returns the calls of all ranks, or empty if all known calls are alike.
  std::string Describe(uint64_t number) const;

 private:
  static constexpr size_t kCalls = 16;  // of this rank and of each peer that are kept

  const std::vector<int> global_ranks_;
  const int rank_;
  std::array<FrameHeader, kCalls> own_ = {};
  std::vector<std::deque<FrameHeader>> of_peers_;  // by group rank
  uint64_t last_ = 0;
  bool has_early_calls_ = false;  // of peers, after last_
  std::optional<uint64_t> difference_;
};

}  // namespace rankrun::comm::stream

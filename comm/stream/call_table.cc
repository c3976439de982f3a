#include "comm/stream/call_table.h"

#include <algorithm>
#include <utility>

#include "comm/core/calls.h"

namespace rankrun::comm::stream {

CallTable::CallTable(std::vector<int> global_ranks, int rank)
    : global_ranks_(std::move(global_ranks)), rank_(rank), of_peers_(global_ranks_.size()) {}

bool CallTable::Enter(const Operation& operation, uint64_t fingerprint) {
  last_ = operation.number;
  own_[operation.number % kCalls] = HeaderOf(FrameKind::kCall, operation, fingerprint);
  if (!std::exchange(has_early_calls_, false)) return false;
  for (int peer = 0; peer < static_cast<int>(of_peers_.size()); ++peer) {
    const FrameHeader* call = Of(peer, operation.number);
    if (call != nullptr && call->fingerprint != fingerprint) difference_ = operation.number;
  }
  return difference_.has_value();
}

const FrameHeader* CallTable::Own(uint64_t number) const {
  const FrameHeader& call = own_[number % kCalls];
  return number > 0 && call.number == number ? &call : nullptr;
}

const FrameHeader* CallTable::Of(int peer, uint64_t number) const {
  for (const FrameHeader& call : of_peers_[static_cast<size_t>(peer)]) {
    if (call.number == number) return &call;
  }
  return nullptr;
}

bool CallTable::Note(int peer, const FrameHeader& header) {
  if (Of(peer, header.number) != nullptr) return false;
  std::deque<FrameHeader>& calls = of_peers_[static_cast<size_t>(peer)];
  calls.push_back(header);
  if (calls.size() > kCalls) calls.pop_front();
  has_early_calls_ = has_early_calls_ || header.number > last_;
  const FrameHeader* own = Own(header.number);
  if (own == nullptr || own->fingerprint == header.fingerprint) return false;
  NoteDifference(peer, header);
  return true;
}

// The earliest call that differs explains all later ones.
void CallTable::NoteDifference(int peer, const FrameHeader& header) {
  difference_ = std::min({header.number, last_, difference_.value_or(last_)});
  Note(peer, header);
}

std::string CallTable::Describe(uint64_t number) const {
  const FrameHeader* own = Own(number);
  CallsByRank calls(global_ranks_.size());
  bool differ = false;
  for (int rank = 0; rank < static_cast<int>(calls.size()); ++rank) {
    const FrameHeader* call = rank == rank_ ? own : Of(rank, number);
    if (call == nullptr) continue;
    calls[static_cast<size_t>(rank)] = comm::Describe(OperationIn(*call));
    differ = differ || (own != nullptr && call->fingerprint != own->fingerprint);
  }
  return differ || own == nullptr ? DescribeCalls(calls, global_ranks_) : "";
}

}  // namespace rankrun::comm::stream

#include "store/server/admission.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace rankrun::store {
namespace {

void Uncount(const SocketAddress& peer, std::map<AddressBytes, size_t>& counts) {
  auto found = counts.find(peer.Bytes());
  RANKRUN_CHECK(found != counts.end(), "a connection left that was never counted");
  found->second -= 1;
  if (found->second == 0) counts.erase(found);
}

}  // namespace

Admission::Admission(AdmissionLimits limits) : limits_(std::move(limits)) {
  Allow(std::exchange(limits_.allowed, {}));
}

// Keeps single addresses in a set, because a job of many nodes has thousands.
void Admission::Allow(std::vector<AddressRange> ranges) {
  single_.clear();
  for (const AddressRange& range : ranges) {
    if (range.is_single()) single_.insert(range.first());
  }
  std::erase_if(ranges, [](const AddressRange& range) { return range.is_single(); });
  limits_.allowed = std::move(ranges);
}

Result<void> Admission::Enter(const SocketAddress& peer) {
  if (auto allowed = CheckAddress(peer); !allowed) return allowed;
  return EnterUnknown(peer);
}

Result<void> Admission::EnterUnknown(const SocketAddress& peer) {
  if (connections_ >= limits_.connections) {
    return Error{ErrorCode::kInvalid,
                 "there are " + std::to_string(connections_) + " connections already"};
  }
  auto found = silent_.find(peer.Bytes());
  size_t silent = found == silent_.end() ? 0 : found->second;
  if (silent >= limits_.silent_per_address) {
    return Error{ErrorCode::kInvalid, "the address has " + std::to_string(silent) +
                                          " connections already that have sent nothing"};
  }
  silent_[peer.Bytes()] += 1;
  connections_ += 1;
  return {};
}

void Admission::MarkActive(const SocketAddress& peer) { Uncount(peer, silent_); }

Result<void> Admission::EnterUnvouched(const SocketAddress& peer) {
  auto found = unvouched_.find(peer.Bytes());
  if (found != unvouched_.end() && found->second >= limits_.unvouched_per_address) {
    return Error{ErrorCode::kInvalid, "the address has " + std::to_string(found->second) +
                                          " connections already that no node has vouched for"};
  }
  unvouched_[peer.Bytes()] += 1;
  return {};
}

void Admission::LeaveUnvouched(const SocketAddress& peer) { Uncount(peer, unvouched_); }

void Admission::Leave(const SocketAddress& peer, bool silent) {
  if (silent) MarkActive(peer);
  connections_ -= 1;
}

Result<void> Admission::CheckAddress(const SocketAddress& peer) const {
  const bool is_allowed =
      !is_limited() || single_.contains(peer.Bytes()) ||
      std::any_of(limits_.allowed.begin(), limits_.allowed.end(),
                  [&](const AddressRange& range) { return range.Contains(peer); });
  if (is_allowed) return {};
  return Error{ErrorCode::kInvalid, "the address is in none of the ranges that are allowed"};
}

}  // namespace rankrun::store

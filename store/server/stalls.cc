#include "store/server/stalls.h"

namespace rankrun::store {

void Stalls::Progress(ConnectionId id, size_t bytes, TimePoint now) {
  auto [place, is_new] = places_.try_emplace(id);
  if (is_new) {
    place->second = halves_.insert(halves_.end(), {id, now, 0});
    return;
  }
  Half& half = *place->second;
  half.bytes += bytes;
  if (half.bytes < kProgressBytes) return;
  half.since = now;
  half.bytes = 0;
  halves_.splice(halves_.end(), halves_, place->second);
}

void Stalls::Forget(ConnectionId id) {
  auto found = places_.find(id);
  if (found == places_.end()) return;
  halves_.erase(found->second);
  places_.erase(found);
}

void Stalls::Clear() {
  places_.clear();
  halves_.clear();
}

std::vector<ConnectionId> Stalls::TakeStalled(TimePoint now) {
  std::vector<ConnectionId> stalled;
  while (!halves_.empty() && now - halves_.front().since >= timeout_) {
    stalled.push_back(halves_.front().id);
    places_.erase(halves_.front().id);
    halves_.pop_front();
  }
  return stalled;
}

std::optional<TimePoint> Stalls::NextDeadline() const {
  if (halves_.empty()) return std::nullopt;
  return halves_.front().since + timeout_;
}

}  // namespace rankrun::store

#include "comm/shm/streaming.h"

#include <algorithm>

namespace rankrun::comm::shm {

StreamingChoice::Next StreamingChoice::ForNextChunk() {
  if (chunks_ == pause_ + kTrial) {
    chunks_ = 0;
    pause_ = std::min(2 * pause_, kMaxPause);
  }
  bool tried = chunks_ >= pause_;
  chunks_ += 1;
  return {.streams = streams_ != tried, .counts = chunks_ % kTrial == 0};
}

// Estimates the cost as the smallest one seen, because a rank may lose its
// processor during a chunk. Higher costs raise the estimate only slowly.
void StreamingChoice::Learn(bool streamed, uint64_t ticks) {
  constexpr uint64_t kSlowness = 8;
  constexpr uint64_t kMaxTimes = 4;
  uint64_t& known = ticks_[streamed ? 1 : 0];
  if (known == 0 || ticks < known) {
    known = ticks;
  } else {
    known += (std::min(ticks, kMaxTimes * known) - known) / kSlowness;
  }
  uint64_t used = ticks_[streams_ ? 1 : 0];
  uint64_t other = ticks_[streams_ ? 0 : 1];
  if (used == 0 || other == 0 || other + other / kSlowness >= used) return;
  streams_ = !streams_;
  pause_ = kMinPause;
  chunks_ = 0;
}

}  // namespace rankrun::comm::shm

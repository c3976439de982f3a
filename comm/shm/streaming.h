#pragma once

#include <array>
#include <cstdint>

namespace rankrun::comm::shm {

// Chooses by measurement whether chunks are written past the caches (copy.h).
// The better way depends on the distance between the processors, by a factor of
// four and more. It changes when the kernel or a hypervisor moves processes to
// other processors. Equal inputs give equal choices. A value.
class StreamingChoice {
 public:
  // Chunks of one trial of the other way. The first ones are not representative,
  // because the caches are as the chunks before have left them.
  static constexpr uint32_t kTrial = 8;
  // Chunks between two trials; the number doubles while trials change nothing.
  static constexpr uint32_t kMinPause = 32;
  static constexpr uint32_t kMaxPause = 1024;

  struct Next {
    bool streams;
    bool counts;  // measure its cost even if the measurement is expensive
  };
  Next ForNextChunk();
  // Records the cost of a chunk in ticks.
  void Learn(bool streamed, uint64_t ticks);

 private:
  bool streams_ = false;
  uint32_t pause_ = kMinPause;
  uint32_t chunks_ = 0;              // since the last trial
  std::array<uint64_t, 2> ticks_{};  // estimated cost: cached, streamed; 0: unknown
};

}  // namespace rankrun::comm::shm

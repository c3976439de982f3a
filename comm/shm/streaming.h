#pragma once

#include <array>
#include <cstdint>

namespace rankrun::comm {

// Whether chunks are better written past the caches (copy.h), found out by what
// they cost. That depends on how far apart the processors are, by a factor of
// four and more either way, and changes while the kernel, or who runs a virtual
// machine, moves them. Two that are told the same say the same. A value.
class StreamingChoice {
 public:
  // So many chunks are tried the other way: the first of them still find memory
  // as the ones before have left it.
  static constexpr uint32_t kTrial = 8;
  // So many chunks lie between trials, more each time that nothing changes.
  static constexpr uint32_t kLeastPause = 32;
  static constexpr uint32_t kMostPause = 1024;

  struct Next {
    bool streams;
    bool counts;  // its cost is wanted, even if it costs something to know it
  };
  Next ForNextChunk();
  // What one of them took, in ticks.
  void Learn(bool streamed, uint64_t ticks);

 private:
  bool streams_ = false;
  uint32_t pause_ = kLeastPause;
  uint32_t chunks_ = 0;  // since the last trial
  std::array<uint64_t, 2> ticks_{};
};

}  // namespace rankrun::comm

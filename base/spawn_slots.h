#pragma once

#include <array>

#include "base/fd.h"
#include "base/result.h"
#include "base/spawn.h"

namespace rankrun {

// Low descriptor numbers through which starts hand descriptors to a child. It
// gets a copy of no number above them, and has none of those to close, so they
// are best taken while few descriptors are open.
// Thread: one start at a time.
class SpawnSlots {
 public:
  static constexpr size_t kCount = kStatusPageFd + 2;  // for 0 to 3 and for the way back

  // Errors: kExhausted, kSystem.
  static Result<SpawnSlots> Open();

  int number(size_t slot) const { return slots_[slot].get(); }
  int highest() const;

  // Makes a slot a copy of `fd`. False: there is no `fd`, says errno.
  bool Fill(size_t slot, int fd) const;
  void Clear() const;

 private:
  Fd empty_;  // what is in a slot that is not filled
  std::array<Fd, kCount> slots_;
};

}  // namespace rankrun

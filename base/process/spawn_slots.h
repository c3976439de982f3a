#pragma once

#include <array>

#include "base/fd.h"
#include "base/process/spawn.h"
#include "base/result.h"

namespace rankrun {

// Low descriptor numbers through which starts hand descriptors to a child. The
// child copies no descriptor above them and need not close any, so open the
// slots while few descriptors are open.
// Thread: one start at a time.
class SpawnSlots {
 public:
  static constexpr size_t kCount = kStatusPageFd + 2;  // 0 to 3, and the pipe for failures

  // Errors: kExhausted, kSystem.
  static Result<SpawnSlots> Open();

  int number(size_t slot) const { return slots_[slot].get(); }
  int highest() const;

  // Makes a slot a copy of `fd`. Returns false if `fd` is not open; errno has
  // the cause.
  bool Fill(size_t slot, int fd) const;
  void Clear() const;

 private:
  Fd empty_;  // content of a slot that is not in use
  std::array<Fd, kCount> slots_;
};

}  // namespace rankrun

#include "base/process/spawn_slots.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rankrun {
namespace {

constexpr int kFirstSlot = 10;  // above all numbers that a child uses

Error CannotOpen() { return SystemError("open descriptors to start processes", errno); }

}  // namespace

Result<SpawnSlots> SpawnSlots::Open() {
  SpawnSlots opened;
  opened.empty_.Reset(open("/", O_PATH | O_CLOEXEC));
  if (!opened.empty_) return CannotOpen();
  for (Fd& slot : opened.slots_) {
    slot.Reset(fcntl(opened.empty_.get(), F_DUPFD_CLOEXEC, kFirstSlot));
    if (!slot) return CannotOpen();
  }
  return opened;
}

int SpawnSlots::highest() const {
  int highest = 0;
  for (const Fd& slot : slots_) highest = std::max(highest, slot.get());
  return highest;
}

bool SpawnSlots::Fill(size_t slot, int fd) const {
  return dup3(fd, slots_[slot].get(), O_CLOEXEC) >= 0;
}

void SpawnSlots::Clear() const {
  for (const Fd& slot : slots_) dup3(empty_.get(), slot.get(), O_CLOEXEC);
}

}  // namespace rankrun

#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "base/status/death_watch.h"
#include "store/store.h"

namespace rankrun::comm {

// File in which the ranks of a world meet. It counts the ranks that use it, and
// the last one that leaves removes it, so that the path can be used again. A rank
// that dies does not leave: then the file stays, and another run is refused there.
struct MeetingFile {
  std::string path;
  std::string world;  // at the head of the file; ranks with another text are refused
  int attempt;        // of the ranks of this attempt
};

// Opens the file, or creates it, and counts this rank.
// Errors: those of FileStore::Open; kTimeout, a rank that died left it half
// removed.
Result<std::unique_ptr<store::Store>> EnterFile(const MeetingFile& file, TimePoint deadline,
                                                const DeathWatch& deaths);

// Decrements the count, and removes the file if it was the last one. Best
// effort. `store` is the result of EnterFile, and can no longer be used.
void LeaveFile(const MeetingFile& file, store::Store& store);

}  // namespace rankrun::comm

#pragma once

#include <atomic>
#include <cstdint>

namespace rankrun::comm::shm {

// Writes the exit code of this process plus 1 to `code` when the process ends by exit() or by a
// return from main. Thread: any.
class ExitNote {
 public:
  // `code` outlives this object.
  explicit ExitNote(std::atomic<int32_t>& code);
  ExitNote(const ExitNote&) = delete;
  ExitNote& operator=(const ExitNote&) = delete;
  ~ExitNote();

 private:
  std::atomic<int32_t>& code_;
};

}  // namespace rankrun::comm::shm

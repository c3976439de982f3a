#include "comm/world/stop_number.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/status/status_page.h"

namespace rankrun::comm {

uint32_t NextHold(const StatusPage* page) {
  static Mutex mutex;
  static uint32_t last = 0;
  MutexLock lock(mutex);
  // A program that ran before in this process has used the numbers up to there.
  if (page != nullptr) last = std::max(last, page->debuggers_ended());
  return ++last;
}

bool TellAgent(const std::string& what, const Stop& stop, const std::string& rest) {
  const char* path = std::getenv("RANKRUN_BREAKPOINT_PIPE");
  if (path == nullptr) return false;
  Fd pipe(open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  const std::string line = what + " " + std::to_string(stop.global_rank) + " " +
                           std::to_string(getpid()) + " " + std::to_string(stop.hold) + rest + "\n";
  return pipe && write(pipe.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace rankrun::comm

#include "base/random_bytes.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"

namespace rankrun {

bool FillRandom(std::span<std::byte> bytes) {
  Fd device;
  while (!bytes.empty()) {
    ssize_t count = device ? read(device.get(), bytes.data(), bytes.size())
                           : getrandom(bytes.data(), bytes.size(), 0);
    if (count > 0) {
      bytes = bytes.subspan(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      if (device) return false;
      device.Reset(open("/dev/urandom", O_RDONLY | O_CLOEXEC));
      if (!device) return false;
    }
  }
  return true;
}

}  // namespace rankrun

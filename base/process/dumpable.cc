#include "base/process/dumpable.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace rankrun {
namespace {

bool MayTraceAll() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
  if (syscall(SYS_capget, &header, sets.data()) != 0) return false;
  return (sets[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective & CAP_TO_MASK(CAP_SYS_PTRACE)) != 0;
}

}  // namespace

bool HidesProcFiles() {
  constexpr int kDumpable = 1;
  return prctl(PR_GET_DUMPABLE) != kDumpable && !MayTraceAll();
}

}  // namespace rankrun

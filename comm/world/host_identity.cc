#include "comm/world/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace rankrun::comm {
namespace {

constexpr char kUnknown[] = "unknown/";

}  // namespace

bool IsUnknownHost(const std::string& identity) { return identity.starts_with(kUnknown); }

std::string HostIdentity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat pids {};
  if (stat("/proc/self/ns/pid", &pids) != 0 || boot.empty()) {
    // Unique per process, so that this rank shares memory with no other.
    return kUnknown + std::to_string(getpid());
  }
  return boot + "/" + std::to_string(pids.st_ino) + "/" + std::to_string(geteuid());
}

}  // namespace rankrun::comm

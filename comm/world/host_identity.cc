#include "comm/world/host_identity.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/host_name.h"
#include "base/memory_file.h"
#include "base/process/dumpable.h"

namespace rankrun::comm {
namespace {

constexpr char kUnknown[] = "unknown/";
constexpr char kUnshared[] = "/without shared memory/";
constexpr char kHidden[] = "/not dumpable/";

}  // namespace

bool IsUnknownHost(const std::string& identity) { return identity.starts_with(kUnknown); }

bool LacksSharedMemory(const std::string& identity) {
  return identity.find(kUnshared) != identity.npos;
}

bool HidesFiles(const std::string& identity) { return identity.find(kHidden) != identity.npos; }

std::string HostIdentity() {
  const std::string boot = BootId();
  struct stat pids {};
  if (stat("/proc/self/ns/pid", &pids) != 0 || boot.empty()) {
    // Unique per process, so that this rank shares memory with no other.
    return kUnknown + std::to_string(getpid());
  }
  std::string identity = boot + "/" + std::to_string(pids.st_ino) + "/" + std::to_string(geteuid());
  const char* id = std::getenv("RANKRUN_HOST_ID");
  if (id != nullptr && *id != '\0') identity += std::string("/") + id;
  // Unique per process, as above.
  if (HidesProcFiles()) return identity + kHidden + std::to_string(getpid());
  return HasSealedMemory() ? identity : identity + kUnshared + std::to_string(getpid());
}

}  // namespace rankrun::comm

#include "comm/core/home_process.h"

#include <unistd.h>

namespace rankrun::comm {
namespace {

std::string WithPid(const std::string& process, pid_t pid) {
  return process + " (pid " + std::to_string(pid) + ")";
}

}  // namespace

Error HomeProcess::ErrorOfFork(const std::string& owner, const std::string& thing) const {
  return {ErrorCode::kInvalid,
          WithPid("this process", getpid()) + " is a fork of " + WithPid(owner, pid_) +
              ", and only that one may use " + thing +
              ": want no such call in a data loader, or start it before Init or by exec"};
}

}  // namespace rankrun::comm

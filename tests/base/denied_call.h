#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace rankrun::test {

// A system call that fails, as on an older kernel or in a container.
struct DeniedCall {
  std::string name;
  long number;
  int error;  // errno
  // It fails only if its first argument has exactly the bits `value` of those in `mask`.
  uint32_t mask = 0;
  uint32_t value = 0;
};

// For the names of tests.
inline void PrintTo(const DeniedCall& call, std::ostream* out) {
  *out << call.name << " with errno " << call.error;
}

// Denies a call in this process for ever, and in all that it starts. Returns false if the kernel
// does not filter system calls.
inline bool Deny(const DeniedCall& call) {
  const auto number = static_cast<uint32_t>(call.number);
  const auto answer = SECCOMP_RET_ERRNO | static_cast<uint32_t>(call.error);
  std::vector<sock_filter> steps = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, call.mask),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call.value, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, answer),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{.len = static_cast<unsigned short>(steps.size()), .filter = steps.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace rankrun::test

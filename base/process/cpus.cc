#include "base/process/cpus.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace rankrun {
namespace {

constexpr int kBitsPerWord = 8 * sizeof(unsigned long);

}  // namespace

Result<Cpus> AllowedCpus() {
  constexpr size_t kMaxWords = 65536;
  // The kernel refuses a mask that is shorter than its own.
  for (size_t words = 16; words <= kMaxWords; words *= 2) {
    std::vector<unsigned long> mask(words);
    long bytes = syscall(SYS_sched_getaffinity, 0, words * sizeof(unsigned long), mask.data());
    if (bytes < 0 && errno == EINVAL) continue;
    if (bytes < 0) return SystemError("read this process's cpuset", errno);
    Cpus cpus;
    for (int cpu = 0; cpu < static_cast<int>(words) * kBitsPerWord; ++cpu) {
      unsigned long word = mask[static_cast<size_t>(cpu / kBitsPerWord)];
      if ((word >> (cpu % kBitsPerWord) & 1) != 0) cpus.push_back(cpu);
    }
    return cpus;
  }
  return SystemError("read this process's cpuset", EINVAL);
}

std::vector<unsigned long> CpuMask(const Cpus& cpus) {
  std::vector<unsigned long> mask;
  for (int cpu : cpus) {
    auto word = static_cast<size_t>(cpu / kBitsPerWord);
    if (word >= mask.size()) mask.resize(word + 1);
    mask[word] |= 1UL << (cpu % kBitsPerWord);
  }
  return mask;
}

std::string FormatCpus(const Cpus& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ",";
    text += std::to_string(cpus[i]);
    if (last > i) text += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace rankrun

#include "agent/stacks/helper/helper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <optional>
#include <thread>
#include <vector>

#include "agent/stacks/helper/sampler.h"
#include "agent/stacks/stacks_json.h"
#include "base/fd.h"
#include "base/write_all.h"

namespace rankrun::agent {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kExitUsage = 2;
constexpr size_t kMaxProcesses = 64;
constexpr size_t kMaxBytes = 64 << 20;  // of one process

// One process that is being sampled, by a child of this one.
struct Sample {
  pid_t target = 0;
  pid_t child = 0;
  Fd pipe = {};
  Clock::time_point began = {};
  std::string bytes = {};  // lines, of which the last complete one counts
  std::string why_none = {};
};

std::optional<int> NumberOf(const std::string& text) {
  int number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && number > 0;
  return is_number ? std::optional(number) : std::nullopt;
}

[[noreturn]] void RunChild(pid_t target, int fd, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  SampleProcess(target, [fd](const ProcessStacks& stacks) {
    if (!TryWriteAll(fd, FormatStacks(stacks))) _exit(1);
  });
  _exit(0);
}

Sample Start(pid_t target) {
  Sample sample{.target = target};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    sample.why_none = SystemError("create a pipe", errno).message;
    return sample;
  }
  sample.pipe = Fd(ends[0]);
  sample.began = Clock::now();
  Fd write_end(ends[1]);
  const pid_t parent = getpid();
  sample.child = fork();
  if (sample.child == 0) RunChild(target, write_end.get(), parent);
  if (sample.child < 0) {
    sample.why_none = SystemError("start a process", errno).message;
    sample.pipe.Reset();
  }
  return sample;
}

bool IsWritten(const std::string& line) {
  return static_cast<bool>(TryWriteAll(STDOUT_FILENO, line));
}

// Prints the last complete line of a process, or why there is none.
bool Print(Sample& sample) {
  const size_t end = sample.bytes.rfind('\n');
  if (end == std::string::npos) {
    if (sample.why_none.empty()) sample.why_none = "there was no time to look at it";
    return IsWritten(FormatStacks({.pid = sample.target, .note = sample.why_none}));
  }
  const size_t before = sample.bytes.rfind('\n', end == 0 ? 0 : end - 1);
  const size_t begin = before == std::string::npos || before == end ? 0 : before + 1;
  return IsWritten(sample.bytes.substr(begin, end + 1 - begin));
}

// Returns whether the process will write no more.
bool ReadSome(Sample& sample) {
  char buffer[64 * 1024];
  const ssize_t count = read(sample.pipe.get(), buffer, sizeof buffer);
  if (count < 0) return errno != EINTR;
  sample.bytes.append(buffer, static_cast<size_t>(count));
  return count == 0 || sample.bytes.size() > kMaxBytes;
}

void Finish(Sample& sample) {
  sample.pipe.Reset();
  if (sample.child <= 0) return;
  kill(sample.child, SIGKILL);  // not waited for: it may hang in a file system
  waitpid(sample.child, nullptr, WNOHANG);
}

// The processes that are being sampled, some at a time, because each needs a processor.
class Samples {
 public:
  explicit Samples(const std::vector<pid_t>& targets) {
    for (pid_t target : targets) samples_.push_back({.target = target});
  }

  // Reads of all pipes until `deadline`. Returns false if a line could not be printed.
  bool Collect(Clock::time_point deadline) {
    for (;;) {
      StartMore();
      std::vector<pollfd> waits;
      std::vector<Sample*> open;
      for (Sample& sample : samples_) {
        if (!sample.pipe) continue;
        waits.push_back({sample.pipe.get(), POLLIN, 0});
        open.push_back(&sample);
      }
      const auto now = Clock::now();
      if (open.empty() || now >= deadline) return true;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - now);
      const auto wait = next_ < samples_.size() ? std::min(left, kPatience) : left;
      if (poll(waits.data(), waits.size(), static_cast<int>(wait.count())) < 0) continue;
      for (size_t i = 0; i < open.size(); ++i) {
        if (waits[i].revents != 0 && ReadSome(*open[i]) && !End(*open[i])) return false;
      }
    }
  }

  // Prints the last lines of processes that have not ended.
  bool EndAll() {
    bool is_written = true;
    for (Sample& sample : samples_) {
      if (sample.target != 0) is_written = End(sample) && is_written;
    }
    return is_written;
  }

 private:
  static constexpr std::chrono::milliseconds kPatience{200};

  // A process that takes long may hang, and keeps no other from its turn.
  void StartMore() {
    const size_t processors = std::max(2U, std::thread::hardware_concurrency());
    const auto now = Clock::now();
    auto is_busy = [&](const Sample& sample) {
      return sample.pipe && now - sample.began < kPatience;
    };
    auto busy = static_cast<size_t>(std::ranges::count_if(samples_, is_busy));
    for (; next_ < samples_.size() && busy < processors; ++next_) {
      samples_[next_] = Start(samples_[next_].target);
      busy += 1;
    }
  }

  static bool End(Sample& sample) {
    Finish(sample);
    const bool is_written = Print(sample);
    sample.target = 0;
    return is_written;
  }

  std::vector<Sample> samples_;
  size_t next_ = 0;  // first one that has not been started
};

}  // namespace

int RunStacksHelper(std::span<const std::string> arguments) {
  const auto budget = arguments.empty() ? std::nullopt : NumberOf(arguments[0]);
  std::vector<pid_t> targets;
  for (size_t i = 1; budget && i < arguments.size(); ++i) {
    const auto pid = NumberOf(arguments[i]);
    if (!pid || targets.size() == kMaxProcesses) return kExitUsage;
    targets.push_back(*pid);
  }
  if (targets.empty()) {
    std::fputs("usage: rankrun-stacks BUDGET_MS PID...; rankctl stacks shows its output\n", stderr);
    return kExitUsage;
  }
  unsetenv("DEBUGINFOD_URLS");
  const auto deadline = Clock::now() + std::chrono::milliseconds(*budget);
  Samples samples(targets);
  const bool is_written = samples.Collect(deadline);
  return samples.EndAll() && is_written ? 0 : 1;
}

}  // namespace rankrun::agent

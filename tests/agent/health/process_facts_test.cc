#include "agent/health/process_facts.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace rankrun::agent {
namespace {

TEST(NumberInTest, FindsTheLineOfAName) {
  EXPECT_EQ(NumberIn("Name:\tcat\nVmRSS:\t  12 kB\n", "VmRSS"), 12U);
  EXPECT_EQ(NumberIn("Name:\tcat\n", "VmRSS"), 0U);
}

ProcessFacts Read(pid_t pid) {
  AwaitedFiles files;
  return ReadProcessFacts(pid, files);
}

constexpr pid_t kNoProcess = 4'194'305;  // above the kernel's largest pid

bool WaitFor(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A child process that runs `body`; the destructor kills it.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(0);
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;

  bool WaitForFacts(const std::function<bool(const ProcessFacts&)>& condition) const {
    return WaitFor([&] { return condition(Read(pid_)); });
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ProcessFactsTest, AReaderOfAPipeIsSeenWithThePipe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Child child([&] {
    char byte;
    if (read(ends[0], &byte, 1) < 0) _exit(1);
  });
  EXPECT_TRUE(child.WaitForFacts([](const ProcessFacts& facts) {
    return facts.state == 'S' && facts.call == CallKind::kFile && facts.call_name == "read" &&
           facts.file.starts_with("pipe:[");
  }));
  close(ends[0]);
  close(ends[1]);
}

TEST(ProcessFactsTest, ASleeperIsSeen) {
  Child child([] { sleep(1'000); });
  EXPECT_TRUE(child.WaitForFacts([](const ProcessFacts& facts) {
    return facts.call == CallKind::kSleep && facts.call_name == "clock_nanosleep";
  }));
}

TEST(ProcessFactsTest, AStoppedProcessIsSeenAndHasMemory) {
  Child child([] { raise(SIGSTOP); });
  EXPECT_TRUE(child.WaitForFacts([](const ProcessFacts& facts) {
    return facts.state == 'T' && facts.resident_bytes > 0 && facts.tracer == 0;
  }));
}

TEST(ProcessFactsTest, TimeOfTheProcessorGrows) {
  Child child([] {
    for (std::atomic<int> i = 0;; ++i) {
    }
  });
  EXPECT_TRUE(WaitFor([&] { return CpuTimeOf(child.pid()) > std::chrono::milliseconds(20); }));
}

TEST(ProcessFactsTest, AProcessThatIsGoneHasNoState) {
  EXPECT_EQ(Read(kNoProcess).state, '\0');
  EXPECT_EQ(CpuTimeOf(kNoProcess), Duration::zero());
}

}  // namespace
}  // namespace rankrun::agent

#include "comm/launch/forked_process.h"

#include <cxxabi.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>
#include <typeinfo>
#include <utility>

#include "base/format.h"
#include "base/interruptible_call.h"
#include "base/memory_file.h"
#include "base/process/signals_blocked.h"
#include "comm/world/contexts.h"

namespace rankrun::comm {
namespace {

namespace fs = std::filesystem;

// First bytes of a record.
constexpr char kReturned = '+';
constexpr char kThrew = '-';
constexpr char kLostPeer = '~';

Error NoFork(const std::string& why) {
  return {ErrorCode::kInvalid,
          why + ": call Spawn earlier, or start the program again by OwnProgram of launch.h"};
}

int ThreadsOfThisProcess() {
  std::error_code unreadable;
  fs::directory_iterator tasks("/proc/self/task", unreadable);
  if (unreadable) return 1;
  return static_cast<int>(std::distance(fs::begin(tasks), fs::end(tasks)));
}

// CUDA opens this device when a program initialises it.
bool UsesGpu() {
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", unreadable)) {
    if (fs::read_symlink(entry, unreadable) == "/dev/nvidia-uvm") return true;
  }
  return false;
}

std::string TypeName(const std::exception& error) {
  int status = 0;
  std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(typeid(error).name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : "exception";
}

SpawnRecord Run(const std::function<void(int)>& function, int rank) {
  try {
    function(rank);
    return {.returned = true};
  } catch (const DistNetworkError& error) {
    return {.lost_peer = true, .exception = TypeName(error) + ": " + error.what()};
  } catch (const std::exception& error) {
    return {.exception = TypeName(error) + ": " + error.what()};
  } catch (...) {
    return {.exception = "an exception of unknown type"};
  }
}

// Forks. In the child, SIGTERM has its default disposition from the beginning.
pid_t ForkWithoutHandlerOfSigterm() {
  SignalsBlocked blocked;
  pid_t pid = fork();
  if (pid == 0) signal(SIGTERM, SIG_DFL);
  return pid;
}

void UnblockSigterm() {
  sigset_t term;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_UNBLOCK, &term, nullptr);
}

[[noreturn]] void RunChild(const std::function<void(int)>& function, int rank, const Fd& file) {
  InterruptibleCall::ForgetParents();
  SpawnRecord record = Run(function, rank);
  std::string text = EncodeRecord(record);
  bool written = write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  std::fflush(nullptr);
  // Destructors and exit handlers belong to the parent.
  _exit(record.returned && written ? 0 : 1);
}

std::string ReadWhole(const Fd& file) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return "";
  std::string text(static_cast<size_t>(status.st_size), '\0');
  ssize_t count = pread(file.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

}  // namespace

ForkFacts FactsOfThisProcess() {
  constexpr int kAttempts = 100;
  int threads = ThreadsOfThisProcess();
  for (int i = 0; i < kAttempts && threads > 1; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    threads = ThreadsOfThisProcess();
  }
  return {.threads = threads, .has_world = AnyWorld(), .uses_gpu = UsesGpu()};
}

Result<void> CheckFork(const ForkFacts& facts) {
  if (facts.has_world) {
    return NoFork("this process has a process group, which a fork cannot use");
  }
  if (facts.uses_gpu) return NoFork("this process uses a GPU, which a fork cannot");
  if (facts.threads > 1) {
    return NoFork("this process has " + std::to_string(facts.threads) +
                  " threads, of which a fork has one only");
  }
  return {};
}

std::string EncodeRecord(const SpawnRecord& record) {
  if (record.returned) return std::string(1, kReturned);
  return (record.lost_peer ? kLostPeer : kThrew) + record.exception;
}

SpawnRecord DecodeRecord(const std::string& text) {
  if (text.empty()) return {};
  return {.returned = text[0] == kReturned,
          .lost_peer = text[0] == kLostPeer,
          .exception = text.substr(1)};
}

std::optional<SpawnFailure> FailureOf(int rank, pid_t pid, const SpawnRecord& record,
                                      const std::optional<ProcessExit>& exit) {
  if (exit ? exit->succeeded() : record.returned) return std::nullopt;
  SpawnFailure failure{.rank = rank, .pid = pid, .exception = record.exception};
  if (exit && exit->signaled) failure.signal = exit->value;
  if (exit && !exit->signaled) failure.exit_code = exit->value;
  return failure;
}

std::string InWords(const SpawnFailure& failure) {
  std::string process =
      "rank " + std::to_string(failure.rank) + " (pid " + std::to_string(failure.pid) + ") ";
  if (!failure.exception.empty()) return process + "threw " + failure.exception;
  if (failure.signal) return process + "was killed by " + SignalName(*failure.signal);
  if (failure.exit_code) {
    return process + "ended with exit code " + std::to_string(*failure.exit_code);
  }
  return process + "has ended, and other code of this program has taken its exit code";
}

Result<ForkedProcess> ForkedProcess::Start(const std::function<void(int)>& function, int rank,
                                           std::vector<ForkedProcess>& others) {
  ForkedProcess process;
  process.rank_ = rank;
  auto record = CreateMemoryFile("rankrun-spawn");
  if (!record) return std::move(record).error().In("keep an exception");
  process.record_ = std::move(*record);
  std::fflush(nullptr);  // otherwise the child would write this output, too
  const pid_t parent = getpid();
  process.pid_ = ForkWithoutHandlerOfSigterm();
  if (process.pid_ < 0) return SystemError("fork", errno);
  if (process.pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);  // it has died before prctl
    UnblockSigterm();
    others.clear();
    RunChild(function, rank, process.record_);
  }
  auto handle = ProcessHandle::Open(process.pid_);
  if (handle) {
    process.handle_ = std::move(*handle);
    return process;
  }
  if (handle.error().code == ErrorCode::kNotFound) {  // where the program ignores SIGCHLD
    process.Reap();
    return process;
  }
  kill(process.pid_, SIGKILL);
  while (waitpid(process.pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  return std::move(handle).error();
}

void ForkedProcess::Signal(int number) const { handle_.Send(number); }

void ForkedProcess::Reap() {
  SpawnRecord record = DecodeRecord(ReadWhole(record_));
  failure_ = FailureOf(rank_, pid_, record, handle_ ? handle_.Reap() : std::nullopt);
  lost_peer_ = record.lost_peer;
  ended_ = true;
}

}  // namespace rankrun::comm

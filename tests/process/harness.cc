#include "tests/process/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "tests/paths.h"

namespace rankrun::testing {
namespace {

// Script of workers that a preloader forks, and that become other programs.
constexpr const char* kInto = "tests/process/workers/into.py";

[[noreturn]] void RunChild(const Job::Options& options, const ScratchFolder& folder) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that ctest kills leaves no job
  if (options.orphaned) {
    setsid();
  } else {
    setpgid(0, 0);  // not orphaned: the parent is in the same session
  }
  int in = open(folder.Path("in").c_str(), O_RDONLY);
  int out = open(folder.Path("out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  int err = options.stderr_fd != Fd::kNone
                ? options.stderr_fd
                : open(folder.Path("err").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  setenv("OMP_NUM_THREADS", "1", 1);  // otherwise rankrun prints a message
  setenv("RANKRUN_PREFIX", "none", 1);
  setenv("TMPDIR", folder.path().c_str(), 1);  // other jobs' folders would be named at the end
  setenv("XDG_STATE_HOME", folder.Path("state").c_str(), 1);  // for kept reports
  for (const auto& [name, value] : options.variables) setenv(name.c_str(), value.c_str(), 1);
  std::string program = options.program.empty() ? test::Program("rankrun") : options.program;
  std::vector<char*> argv{program.data()};
  for (const std::string& argument : options.arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  if (options.in_child) options.in_child();
  execv(program.c_str(), argv.data());
  _exit(99);
}

// For a test that fails.
void PrintChildren() {
  for (pid_t child : ChildrenOf(getpid())) {
    const std::string process = "/proc/" + std::to_string(child) + "/";
    std::string command = ReadText(process + "cmdline");
    std::replace(command.begin(), command.end(), '\0', ' ');
    std::cerr << "left: " << child << ' ' << command << "in " << ReadText(process + "wchan")
              << ", stat " << ReadText(process + "stat");
  }
}

}  // namespace

bool WaitFor(const std::function<bool()>& condition, milliseconds deadline) {
  auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return condition();
    std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return true;
}

ScratchFolder::ScratchFolder() : path_("/tmp/rankrun-test-XXXXXX") {
  if (mkdtemp(path_.data()) == nullptr) std::abort();
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ScratchFolder::Script(const std::string& name, const std::string& body) const {
  std::ofstream(Path(name)) << "#!/bin/sh\n" << body << "\n";
  chmod(Path(name).c_str(), 0755);
  return Path(name);
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string ReadText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  std::error_code error;
  std::filesystem::path tasks = "/proc/" + std::to_string(parent) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::istringstream list(ReadText(task.path() / "children"));
    for (pid_t pid; list >> pid;) children.push_back(pid);
  }
  return children;
}

static std::string CommandOf(pid_t process) {
  return ReadText("/proc/" + std::to_string(process) + "/cmdline");
}

static bool IsPreloading() { return getenv("RANKRUN_TEST_PRELOAD") != nullptr; }

pid_t PreloaderOf(pid_t agent) {
  for (pid_t child : ChildrenOf(agent)) {
    if (CommandOf(child).find("/preload.py") != std::string::npos) return child;
  }
  return 0;
}

std::vector<pid_t> WorkersOf(pid_t agent) {
  std::vector<pid_t> workers = ChildrenOf(agent);
  // A child that executes its program just now, or has not yet, may be the preloader.
  if (IsPreloading()) {
    std::erase_if(workers, [own = CommandOf(agent)](pid_t child) {
      const std::string command = CommandOf(child);
      return command.empty() || command == own;
    });
  }
  std::erase(workers, PreloaderOf(agent));
  return workers;
}

Job::Job(const Options& options) {
  std::ofstream(folder_.Path("in")) << options.stdin_text;
  pid_ = fork();
  if (pid_ == 0) RunChild(options, folder_);
}

Job::~Job() {
  if (exit_) return;
  for (pid_t child : ChildrenOf(pid_)) kill(child, SIGKILL);
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Job::Signal(int signal_number) const { kill(pid_, signal_number); }

std::optional<ProcessExit> Job::Wait(milliseconds deadline) {
  WaitFor([this] { return exit_ || (exit_ = ReapByPid(pid_)).has_value(); }, deadline);
  return exit_;
}

bool Job::WaitForOut(const std::string& text) const {
  return WaitFor([&] { return Out().find(text) != std::string::npos; });
}

bool Job::WaitForErr(const std::string& text) const {
  return WaitFor([&] { return Err().find(text) != std::string::npos; });
}

pid_t Job::Agent() const {
  WaitFor([this] { return !ChildrenOf(pid_).empty(); });
  std::vector<pid_t> children = ChildrenOf(pid_);
  return children.empty() ? 0 : children[0];
}

std::vector<pid_t> Job::Workers(size_t count) const {
  pid_t agent = Agent();
  std::vector<pid_t> workers;
  WaitFor([&] {
    workers = WorkersOf(agent);
    return workers.size() >= count;
  });
  return workers;
}

void AdoptOrphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

bool NothingIsLeft(milliseconds deadline) {
  const bool none = WaitFor(
      [] {
        siginfo_t info{};
        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG) == 0) {
          if (info.si_pid == 0) return false;
          info.si_pid = 0;
        }
        return errno == ECHILD;
      },
      deadline);
  if (!none) PrintChildren();
  return none;
}

std::vector<std::string> Shell(std::vector<std::string> flags, const std::string& script) {
  if (IsPreloading()) {
    flags.insert(flags.end(), {"--preload", "json", kPython, test::InSource(kInto)});
  } else {
    flags.emplace_back("--no-python");
  }
  flags.insert(flags.end(), {"/bin/sh", "-c", script});
  return flags;
}

}  // namespace rankrun::testing

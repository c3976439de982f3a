#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process/spawn.h"

// Runs the real programs and observes them from outside.
namespace rankrun::testing {

using std::chrono::milliseconds;

inline constexpr const char* kPython = "/usr/bin/python3";

inline ProcessExit Code(int code) { return {.signaled = false, .value = code}; }
inline ProcessExit KilledBy(int signal_number) {
  return {.signaled = true, .value = signal_number};
}

// Checks until `condition` holds or `deadline` has passed; returns whether it holds.
bool WaitFor(const std::function<bool()>& condition, milliseconds deadline = milliseconds(20'000));

// A temporary folder, removed by the destructor.
class ScratchFolder {
 public:
  ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ~ScratchFolder();
  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // Writes an executable /bin/sh script and returns its path.
  std::string Script(const std::string& name, const std::string& body) const;

 private:
  std::string path_;
};

std::string ReadText(const std::string& path);
// Returns how often `part` is in `text`.
int Count(const std::string& text, const std::string& part);
std::vector<pid_t> ChildrenOf(pid_t parent);
// Returns the children of an agent without its preloader, and the preloader; 0: it has none.
std::vector<pid_t> WorkersOf(pid_t agent);
pid_t PreloaderOf(pid_t agent);

// One run of a program, with its output in files. The destructor kills it and its
// children.
class Job {
 public:
  struct Options {
    std::vector<std::string> arguments = {};            // without the program name
    std::map<std::string, std::string> variables = {};  // added to the environment
    std::string program = {};                           // empty: rankrun
    std::string stdin_text = {};
    std::function<void()> in_child = {};  // runs before the exec
    bool orphaned = false;                // starts a session, as without a shell
    int stderr_fd = Fd::kNone;            // replaces the file
  };
  explicit Job(const Options& options);
  Job(const Job&) = delete;
  ~Job();

  pid_t pid() const { return pid_; }
  void Signal(int signal_number) const;

  // Returns its exit; nullopt if it still runs at the deadline.
  std::optional<ProcessExit> Wait(milliseconds deadline = milliseconds(20'000));

  std::string Out() const { return ReadText(folder_.Path("out")); }
  std::string Err() const { return ReadText(folder_.Path("err")); }
  bool WaitForOut(const std::string& text) const;
  bool WaitForErr(const std::string& text) const;

  // Return the pid of the agent, and of the workers once there are `count`.
  pid_t Agent() const;
  std::vector<pid_t> Workers(size_t count) const;

 private:
  ScratchFolder folder_;
  pid_t pid_;
  std::optional<ProcessExit> exit_;
};

// Makes this process the parent of every orphan below it. A test that calls
// NothingIsLeft calls this before its first Job.
void AdoptOrphans();

// Reaps children until none is left (waitid fails with ECHILD) or the deadline has
// passed; returns whether none is left.
bool NothingIsLeft(milliseconds deadline);

// Returns the arguments of `rankrun <flags> /bin/sh -c <script>`. If RANKRUN_TEST_PRELOAD is set,
// the shells are forks of a preloader.
std::vector<std::string> Shell(std::vector<std::string> flags, const std::string& script);

}  // namespace rankrun::testing

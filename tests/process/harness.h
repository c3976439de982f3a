#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/spawn.h"

// Runs the real program and looks at it from outside.
namespace rankrun::testing {

using std::chrono::milliseconds;

inline ProcessExit Code(int code) { return {.signaled = false, .value = code}; }
inline ProcessExit KilledBy(int signal_number) {
  return {.signaled = true, .value = signal_number};
}

// Looks again and again until `condition` holds or `deadline` has passed.
bool WaitFor(const std::function<bool()>& condition, milliseconds deadline = milliseconds(20'000));

// A folder of one test, removed at its end.
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
std::vector<pid_t> ChildrenOf(pid_t parent);

// One run of a program, with its output in files. At its end it and all that
// it left behind are killed.
class Job {
 public:
  struct Options {
    std::vector<std::string> arguments = {};            // after the program's name
    std::map<std::string, std::string> variables = {};  // besides the test's own
    std::string program = {};                           // empty: rankrun
    std::string stdin_text = {};
    std::function<void()> in_child = {};  // before the exec
    bool orphaned = false;                // its process group: there is no shell to continue it
    int stderr_fd = Fd::kNone;            // instead of the file
  };
  explicit Job(const Options& options);
  Job(const Job&) = delete;
  ~Job();

  pid_t pid() const { return pid_; }
  void Signal(int signal_number) const;

  // How it ended; nothing if it still runs at the deadline.
  std::optional<ProcessExit> Wait(milliseconds deadline = milliseconds(20'000));

  std::string Out() const { return ReadText(folder_.Path("out")); }
  std::string Err() const { return ReadText(folder_.Path("err")); }
  bool WaitForOut(const std::string& text) const;
  bool WaitForErr(const std::string& text) const;

  // The agent's number, and the workers', as soon as there are `count`.
  pid_t Agent() const;
  std::vector<pid_t> Workers(size_t count) const;

 private:
  ScratchFolder folder_;
  pid_t pid_;
  std::optional<ProcessExit> exit_;
};

// Makes this process the parent of every orphan below it. To be called before
// the first Job of a test that asks NothingIsLeft.
void AdoptOrphans();

// Reaps all children as they end; whether none is left before the deadline:
// waitid says ECHILD.
bool NothingIsLeft(milliseconds deadline);

// `rankrun <flags> /bin/sh -c <script>`.
std::vector<std::string> Shell(std::vector<std::string> flags, const std::string& script);

}  // namespace rankrun::testing

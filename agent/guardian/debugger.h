#pragma once

#include <sys/types.h>
#include <termios.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "agent/guardian/guardian_link.h"
#include "base/fd.h"

namespace rankrun::agent {

// Program that debugs a worker: RANKRUN_DEBUGGER, or gdb.
std::string DebuggerName();

// A debugger in the foreground of this process's terminal: keys such as Ctrl-C are for it
// alone. Dies with this process. The terminal gets its foreground and its modes back when
// the debugger ends. A process that debugs itself uses the terminal from the background; a
// process in the foreground passes Ctrl-C on to it.
// Thread: one at a time; the process has no other threads.
class Debugger {
 public:
  // Runs `gdb -q -p <process> -ex continue`, or lends the terminal until the process closes
  // the pipe. Returns the debugger, or why there is none.
  static std::variant<std::unique_ptr<Debugger>, DebuggerReport> Start(
      const StartDebugger& request);
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;
  // Kills it if it runs.
  ~Debugger();

  // Call this after SIGCHLD. Resumes a debugger that has stopped, by Ctrl-Z, because no shell
  // would. Returns whether it has ended.
  bool HasEnded();
  // Gives it the terminal that this process has got back from a shell, and continues it.
  void Resume() const;
  bool Is(pid_t pid) const { return pid_ == pid; }

 private:
  Debugger(Fd terminal, const termios& modes) : terminal_(std::move(terminal)), modes_(modes) {}

  [[noreturn]] void Run(const StartDebugger& request, pid_t guardian, int report_fd) const;
  void TakeTerminalBack() const;
  void Abandon();

  Fd terminal_;
  const termios modes_;  // before it began
  pid_t pid_ = 0;        // and process group; 0: it has ended
};

}  // namespace rankrun::agent

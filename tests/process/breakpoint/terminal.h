#pragma once

#include <sys/types.h>
#include <termios.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process/spawn.h"
#include "tests/process/harness.h"

namespace rankrun::testing {

// rankrun on a pseudo-terminal, whose session it leads. The destructor kills it.
class TerminalJob {
 public:
  // `program` empty: rankrun.
  TerminalJob(const std::vector<std::string>& arguments,
              const std::map<std::string, std::string>& variables = {}, std::string program = {});
  TerminalJob(const TerminalJob&) = delete;
  ~TerminalJob();

  // Waits until the terminal shows `text`, or all `texts` in any order, after the last text
  // that was found. Returns false, and reports what it shows, if it does not.
  bool Shows(const std::string& text) { return ShowsAll({text}); }
  bool ShowsAll(const std::vector<std::string>& texts);
  // Returns all that the terminal has shown, without carriage returns.
  const std::string& text() const { return text_; }
  void Type(const std::string& keys) const;

  // Returns whether the terminal is as rankrun began: rankrun is in the foreground, and the
  // modes are the same.
  bool IsRestored() const;
  pid_t pid() const { return pid_; }
  std::optional<ProcessExit> Wait();

 private:
  // Returns false at the end, when no process has the terminal.
  bool Read();

  ScratchFolder home_;  // without a .gdbinit
  pid_t pid_ = 0;
  Fd terminal_;
  termios modes_{};
  std::string text_;
  size_t found_ = 0;  // end of the last text that was found
  std::optional<ProcessExit> exit_;
};

}  // namespace rankrun::testing

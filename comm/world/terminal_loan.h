#pragma once

#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/status/activity.h"
#include "comm/world/stop_number.h"

namespace rankrun::comm {

struct HeldRank;

// Terminal of rankrun, lent to this process, which debugs itself. It is not the controlling
// terminal; Ctrl-C there is SIGINT here. The destructor returns it.
// Thread: one at a time.
class TerminalLoan {
 public:
  // Waits until the agent lends it; without an agent it is /dev/tty.
  // Errors: kInvalid, there is none; kCancelled after the death of another worker; that of
  // `rank.find_failure`.
  static Result<std::unique_ptr<TerminalLoan>> Ask(const HeldRank& rank);
  TerminalLoan(const TerminalLoan&) = delete;
  TerminalLoan& operator=(const TerminalLoan&) = delete;
  ~TerminalLoan();

  const std::string& path() const { return path_; }
  // Tells the agent that this rank goes on, so that it shows the output of the others.
  void GoOn();

 private:
  TerminalLoan(const HeldRank& rank, const StatusPage* page);
  Result<void> AskAgent(const HeldRank& rank);
  Result<void> AwaitPath(const HeldRank& rank);

  const StatusPage* const page_;
  const Stop stop_;
  Fd lent_;  // open as long as the terminal is lent; none: not by an agent
  std::string path_;
  bool goes_on_ = false;
  // For the whole loan, because the user may hold the rank again at any step.
  const Awaited awaited_;
};

}  // namespace rankrun::comm

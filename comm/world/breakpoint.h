#pragma once

#include <map>
#include <memory>
#include <string>

#include "comm/world/held_rank.h"
#include "comm/world/terminal_loan.h"
#include "store/store.h"

namespace rankrun::comm {

struct BreakpointCall {
  int global_rank;
  int skip;
  std::string place;           // of the call: "train.cc:42"
  bool debugs_itself = false;  // the rank gets the terminal instead of a debugger
};

// Breakpoints of a world, as this rank has met them.
struct BreakpointState {
  std::map<std::string, int> skipped = {};  // calls, by their place and arguments
  int holds = 0;                            // calls that were not skipped
  store::Store* store = nullptr;            // of the keys
  // If this rank stops in a debugger:
  std::unique_ptr<DebuggerStop> stop = {};
  std::string stop_key = {};  // for which the others wait
  // If this rank debugs itself:
  std::unique_ptr<TerminalLoan> loan = {};
  std::string awaited_key = {};  // for which the others wait; empty: none

  // Ends the stop and lets the others go on. Errors: those of the store.
  Result<void> GoOn();
  // Errors: those of TerminalLoan::Ask; then the others go on.
  Result<void> Borrow(const HeldRank& rank);
  // Returns the path of the terminal that this rank got in the last call; empty: none.
  std::string terminal() const { return awaited_key.empty() ? "" : loan->path(); }
  // Errors: those of the store.
  Result<void> LetOthersGoOn();
  Result<void> ReturnTerminal();  // lets the others go on, too
};

}  // namespace rankrun::comm

#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/guardian/guardian_link.h"
#include "agent/worker/breakpoint_pipe.h"
#include "base/process/process_handle.h"
#include "base/uv/uv_poll.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Processes of this node's workers that have stopped at breakpoints. The guardian runs the
// debugger of one of them at a time on the terminal, or lends it the terminal; the others
// wait for it.
// Thread: loop.  Lifetime: may not end inside its own callbacks.
class Breakpoints {
 public:
  struct Callbacks {
    std::function<void(StartDebugger)> start;
    std::function<void()> end;  // the debugger that runs; OnReport follows
    // The debugger of the worker's stop number `hold` has ended.
    std::function<void(pid_t worker, uint32_t hold)> let_go;
    // Holds back the output of all workers but this one, or of none.
    std::function<void(std::optional<pid_t> worker)> hold_output;
    std::function<void(const std::string& line)> show;
  };

  Breakpoints(Loop& loop, std::string debugger, Callbacks callbacks);
  Breakpoints(const Breakpoints&) = delete;
  Breakpoints& operator=(const Breakpoints&) = delete;

  void OnNotice(const BreakpointNotice& notice);
  void OnReport(const DebuggerReport& report);
  // Workers that are held: with a debugger, or until there is one or somebody attaches one.
  std::vector<pid_t> Held() const;
  // The workers are being stopped: ends the debugger, which would keep them alive.
  void Clear();

 private:
  struct Stop {
    BreakpointNotice notice;
    pid_t worker;          // the process itself, or the worker above it
    ProcessHandle handle;  // of the process
  };

  // Starts the debugger of the first one that still lives.
  void StartNext();
  Result<void> WatchFirst();
  void OnPassed(const BreakpointNotice& notice);
  void OnReturned(const BreakpointNotice& notice);
  void ShowFailure(const BreakpointNotice& notice, const std::string& why);
  void Forget(const BreakpointNotice& notice);
  std::string WhyNone(const DebuggerReport& report) const;

  Loop& loop_;
  const std::string debugger_;  // name
  Callbacks callbacks_;
  struct Hold {
    pid_t worker;
    uint32_t number;
  };
  std::map<pid_t, Hold> holds_;  // by the process that is held
  std::deque<Stop> stops_;       // the first one has the debugger that runs
  std::unique_ptr<Poll> exit_poll_;
};

}  // namespace rankrun::agent

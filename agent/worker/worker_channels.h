#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/job/job_spec.h"
#include "agent/output/log_directory.h"
#include "agent/worker/breakpoint_pipe.h"
#include "agent/worker/save_fifo.h"
#include "agent/worker/timer_server.h"

namespace rankrun::agent {

// The pipes from workers to their agent: for reports of saving, for torchrun's file timer,
// and for breakpoints.
// Thread: loop.
struct WorkerChannels {
  struct Callbacks {
    SaveFifo::Callbacks saves;
    TimerServer::Callbacks timer;
    std::function<void(const BreakpointNotice&)> on_breakpoint;
  };

  // Creates the pipes that `spec` asks for. A pipe that cannot be created is
  // left out, with a warning. `logs`, the folder of the run, may be null.
  // Errors: kInvalid for a TORCHELASTIC_TIMER_FILE that cannot be used.
  Result<void> Open(Loop& loop, const JobSpec& spec, const LogDirectory* logs, Callbacks callbacks);

  // Prepares for an attempt in which this node's first worker has `first_rank`.
  // Returns the path of the pipe for reports of saving; empty: there is none.
  std::string SavePathFor(int first_rank);
  std::string timer_path() const { return timers ? timers->path() : ""; }

  std::string breakpoint_path() const { return breakpoints ? breakpoints->path() : ""; }

  std::unique_ptr<SaveFifo> saves;
  std::unique_ptr<TimerServer> timers;
  std::unique_ptr<BreakpointPipe> breakpoints;
};

}  // namespace rankrun::agent

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/error_directory.h"
#include "agent/job_spec.h"
#include "agent/save_fifo.h"
#include "agent/timer_server.h"

namespace rankrun::agent {

// A variable of the user's environment.
std::optional<std::string> VariableOf(const JobSpec& spec, const std::string& name);

// The named pipes through which workers talk to their agent: that they save,
// and torchrun's file timer.
// Thread: loop.
struct WorkerChannels {
  struct Callbacks {
    std::function<void(WorkerSaves)> on_saves;
    TimerServer::Callbacks timer;
  };

  // Makes those that `spec` wants. One that cannot be made is missing, with a
  // warning; `errors`, the private folder, may be null.
  // Errors: kInvalid for a TORCHELASTIC_TIMER_FILE that cannot be used.
  Result<void> Open(Loop& loop, const JobSpec& spec, const ErrorDirectory* errors,
                    Callbacks callbacks);

  std::string save_path() const { return saves ? saves->path() : ""; }
  std::string timer_path() const { return timers ? timers->path() : ""; }

  std::unique_ptr<SaveFifo> saves;
  std::unique_ptr<TimerServer> timers;
};

}  // namespace rankrun::agent

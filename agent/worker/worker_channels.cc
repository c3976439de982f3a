#include "agent/worker/worker_channels.h"

#include <utility>

#include "agent/job/environment.h"
#include "base/log.h"

namespace rankrun::agent {

Result<void> WorkerChannels::Open(Loop& loop, const JobSpec& spec, const LogDirectory* logs,
                                  Callbacks callbacks) {
  const bool is_wanted = spec.save_timeout > spec.shutdown_timeout || spec.metrics;
  if (logs != nullptr && is_wanted) {
    auto created =
        SaveFifo::Create(loop, logs->path() + "/saving", spec.workers, std::move(callbacks.saves));
    if (!created) LogWarn(created.error().message + "; RANKRUN_SAVE_FIFO is not set");
    if (created) saves = std::move(*created);
  }
  auto pipe = BreakpointPipe::Create(loop, std::move(callbacks.on_breakpoint));
  if (!pipe) LogWarn(pipe.error().message + "; RANKRUN_BREAKPOINT_PIPE is not set");
  if (pipe) breakpoints = std::move(*pipe);
  if (VariableOf(spec.environment, "TORCHELASTIC_ENABLE_FILE_TIMER") != "1") return {};
  auto typed = VariableOf(spec.environment, "TORCHELASTIC_TIMER_FILE");
  if (!typed && logs == nullptr) {
    LogWarn(
        "TORCHELASTIC_ENABLE_FILE_TIMER: there is no folder for the timer's pipe; set "
        "TORCHELASTIC_TIMER_FILE to its path");
    return {};
  }
  auto created = TimerServer::Create(loop, typed ? *typed : logs->path() + "/timer",
                                     std::move(callbacks.timer));
  if (created) {
    timers = std::move(*created);
    return {};
  }
  if (!typed) {
    LogWarn(created.error().message + "; the workers have no file timer");
    return {};
  }
  return Error{ErrorCode::kInvalid, "TORCHELASTIC_TIMER_FILE: " + created.error().message};
}

std::string WorkerChannels::SavePathFor(int first_rank) {
  if (!saves) return "";
  saves->SetFirstRank(first_rank);
  return saves->path();
}

}  // namespace rankrun::agent

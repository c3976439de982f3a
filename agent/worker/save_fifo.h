#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/job/worker_step.h"
#include "agent/lifecycle/worker_group.h"
#include "agent/worker/line_fifo.h"

namespace rankrun::agent {

// Parses "2 saving" or "2 saved", where 2 is the global rank of one of this node's
// `workers` workers, the first of which has `first_rank`. Returns nothing for any
// other line. Pure.
std::optional<WorkerSaves> ParseSaveLine(std::string_view line, int first_rank, int workers);

// Parses "2 step 120" in the same way: a finished step, which is not negative.
std::optional<WorkerStep> ParseStepLine(std::string_view line, int first_rank, int workers,
                                        TimePoint now);

// Named pipe through which workers without librankrun report that they save, and their steps
// (RANKRUN_SAVE_FIFO). Ignores lines of another form, with one warning.
// Thread: loop.
class SaveFifo {
 public:
  struct Callbacks {
    std::function<void(WorkerSaves)> on_saves;
    std::function<void(const WorkerStep&)> on_step;
  };

  // Errors: those of LineFifo.
  static Result<std::unique_ptr<SaveFifo>> Create(Loop& loop, const std::string& path, int workers,
                                                  Callbacks callbacks);
  SaveFifo(const SaveFifo&) = delete;
  SaveFifo& operator=(const SaveFifo&) = delete;

  const std::string& path() const { return fifo_->path(); }
  // Sets the global rank of this node's first worker, before an attempt.
  void SetFirstRank(int first_rank) { first_rank_ = first_rank; }

 private:
  SaveFifo(int workers, Callbacks callbacks)
      : workers_(workers), callbacks_(std::move(callbacks)) {}

  void OnLine(std::string_view line);

  int workers_;
  int first_rank_ = 0;
  Callbacks callbacks_;
  bool warned_ = false;
  std::unique_ptr<LineFifo> fifo_;
};

}  // namespace rankrun::agent

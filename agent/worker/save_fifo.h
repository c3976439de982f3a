#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/lifecycle/worker_group.h"
#include "agent/worker/line_fifo.h"

namespace rankrun::agent {

// Parses "2 saving" or "2 saved", where 2 is the local rank of one of `workers`
// workers. Returns nothing for any other line. Pure.
std::optional<WorkerSaves> ParseSaveLine(std::string_view line, int workers);

// Named pipe through which workers without librankrun report that they save
// (RANKRUN_SAVE_FIFO). Ignores lines of another form, with one warning.
// Thread: loop.
class SaveFifo {
 public:
  // Errors: those of LineFifo.
  static Result<std::unique_ptr<SaveFifo>> Create(Loop& loop, const std::string& path, int workers,
                                                  std::function<void(WorkerSaves)> on_saves);
  SaveFifo(const SaveFifo&) = delete;
  SaveFifo& operator=(const SaveFifo&) = delete;

  const std::string& path() const { return fifo_->path(); }

 private:
  SaveFifo(int workers, std::function<void(WorkerSaves)> on_saves)
      : workers_(workers), on_saves_(std::move(on_saves)) {}

  void OnLine(std::string_view line);

  int workers_;
  std::function<void(WorkerSaves)> on_saves_;
  bool warned_ = false;
  std::unique_ptr<LineFifo> fifo_;
};

}  // namespace rankrun::agent

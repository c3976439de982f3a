#include "agent/worker/save_fifo.h"

#include <charconv>

#include "base/log.h"
#include "base/parse_number.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

constexpr size_t kShownCharacters = 80;

// Removes the global rank at the start of the line; nothing unless it is of this node.
std::optional<int> TakeLocalRank(std::string_view& line, int first_rank, int workers) {
  int rank = 0;
  auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), rank);
  if (error != std::errc() || rank < first_rank || rank - first_rank >= workers) {
    return std::nullopt;
  }
  line.remove_prefix(static_cast<size_t>(rest - line.data()));
  return rank - first_rank;
}

}  // namespace

std::optional<WorkerSaves> ParseSaveLine(std::string_view line, int first_rank, int workers) {
  auto local_rank = TakeLocalRank(line, first_rank, workers);
  if (local_rank && line == " saving") return WorkerSaves{*local_rank, true};
  if (local_rank && line == " saved") return WorkerSaves{*local_rank, false};
  return std::nullopt;
}

std::optional<WorkerStep> ParseStepLine(std::string_view line, int first_rank, int workers,
                                        TimePoint now) {
  constexpr std::string_view kStep = " step ";
  auto local_rank = TakeLocalRank(line, first_rank, workers);
  if (!local_rank || !line.starts_with(kStep)) return std::nullopt;
  auto step = ParseNumber<int64_t>(line.substr(kStep.size()));
  if (!step || *step < 0) return std::nullopt;
  return WorkerStep{*local_rank, *step, now};
}

Result<std::unique_ptr<SaveFifo>> SaveFifo::Create(Loop& loop, const std::string& path, int workers,
                                                   Callbacks callbacks) {
  std::unique_ptr<SaveFifo> saves(new SaveFifo(workers, std::move(callbacks)));
  auto fifo = LineFifo::Create(loop, path,
                               [raw = saves.get()](std::string_view line) { raw->OnLine(line); });
  if (!fifo) return std::move(fifo).error();
  saves->fifo_ = std::move(*fifo);
  return saves;
}

void SaveFifo::OnLine(std::string_view line) {
  if (auto saves = ParseSaveLine(line, first_rank_, workers_)) {
    callbacks_.on_saves(*saves);
    return;
  }
  const TimePoint now = std::chrono::steady_clock::now();
  if (auto step = ParseStepLine(line, first_rank_, workers_, now)) {
    callbacks_.on_step(*step);
    return;
  }
  if (std::exchange(warned_, true)) return;
  LogWarn("RANKRUN_SAVE_FIFO: ignored \"" + OneLine(line, kShownCharacters) +
          "\"; want \"RANK saving\", \"RANK saved\" or \"RANK step NUMBER\", with a rank from " +
          std::to_string(first_rank_) + " to " + std::to_string(first_rank_ + workers_ - 1));
}

}  // namespace rankrun::agent

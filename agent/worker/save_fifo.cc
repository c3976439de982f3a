#include "agent/worker/save_fifo.h"

#include <charconv>

#include "base/log.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

constexpr size_t kShownCharacters = 80;

}  // namespace

std::optional<WorkerSaves> ParseSaveLine(std::string_view line, int first_rank, int workers) {
  int rank = 0;
  auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), rank);
  if (error != std::errc() || rank < first_rank || rank - first_rank >= workers) {
    return std::nullopt;
  }
  std::string_view state = line.substr(static_cast<size_t>(rest - line.data()));
  if (state == " saving") return WorkerSaves{.local_rank = rank - first_rank, .saving = true};
  if (state == " saved") return WorkerSaves{.local_rank = rank - first_rank, .saving = false};
  return std::nullopt;
}

Result<std::unique_ptr<SaveFifo>> SaveFifo::Create(Loop& loop, const std::string& path, int workers,
                                                   std::function<void(WorkerSaves)> on_saves) {
  std::unique_ptr<SaveFifo> saves(new SaveFifo(workers, std::move(on_saves)));
  auto fifo = LineFifo::Create(loop, path,
                               [raw = saves.get()](std::string_view line) { raw->OnLine(line); });
  if (!fifo) return std::move(fifo).error();
  saves->fifo_ = std::move(*fifo);
  return saves;
}

void SaveFifo::OnLine(std::string_view line) {
  if (auto saves = ParseSaveLine(line, first_rank_, workers_)) {
    on_saves_(*saves);
    return;
  }
  if (std::exchange(warned_, true)) return;
  LogWarn("RANKRUN_SAVE_FIFO: ignored \"" + OneLine(line, kShownCharacters) +
          "\"; want \"RANK saving\" or \"RANK saved\", with a rank from " +
          std::to_string(first_rank_) + " to " + std::to_string(first_rank_ + workers_ - 1));
}

}  // namespace rankrun::agent

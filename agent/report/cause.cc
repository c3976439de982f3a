#include "agent/report/cause.h"

#include <algorithm>
#include <optional>

#include "agent/output/line_buffer.h"

namespace rankrun::agent {
namespace {

constexpr size_t kLastLines = 20;

constexpr std::string_view kLostPeer[] = {
    "Connection closed by peer",
    "Connection reset by peer",
    "Connection was likely closed",
    "Connection refused",
    "Broken pipe",
    "socket hang up",
    "remote process exited",
    "DistNetworkError",
    "lost rank ",
};

// Printed by a Python program that ends with an exception.
constexpr std::string_view kTraceback = "Traceback (most recent call last)";

bool LastLinesContain(std::string_view tail, std::string_view part) {
  for (const std::string& line : LastLines(tail, kLastLines)) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

// The worker failed before any signal of ours.
bool EndedByItself(const WorkerRecord& worker) {
  return worker.failed() && worker.sent_signal == 0 && !LostAPeer(worker);
}

// The worker was ending with an exception of its own when our signal arrived.
bool WasEndingByItself(const WorkerRecord& worker) {
  bool raised = worker.exception || LastLinesContain(worker.stderr_tail, kTraceback);
  return worker.failed() && raised && !LostAPeer(worker);
}

}  // namespace

bool BlamesLostPeer(std::string_view stderr_tail) {
  return std::ranges::any_of(
      kLostPeer, [&](std::string_view part) { return LastLinesContain(stderr_tail, part); });
}

bool LostAPeer(const WorkerRecord& worker) {
  if (!worker.failed()) return false;
  return BlamesLostPeer(worker.stderr_tail) ||
         (worker.exception && BlamesLostPeer(*worker.exception));
}

bool FailedByItself(const WorkerRecord& worker) {
  return EndedByItself(worker) || WasEndingByItself(worker);
}

size_t ChooseCause(const std::vector<WorkerRecord>& workers, const std::vector<size_t>& ended) {
  auto first = [&](auto condition) -> std::optional<size_t> {
    auto found = std::ranges::find_if(ended, [&](size_t i) { return condition(workers[i]); });
    return found == ended.end() ? std::nullopt : std::optional(*found);
  };
  if (auto found = first(EndedByItself)) return *found;
  if (auto found = first(WasEndingByItself)) return *found;
  return first([](const WorkerRecord& worker) { return worker.failed(); }).value_or(ended.front());
}

}  // namespace rankrun::agent

#include "agent/worker/breakpoint_pipe.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/parse_number.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

constexpr size_t kShownCharacters = 80;
constexpr uint32_t kMaxHold = 1'000'000;

// Removes the first word of `text` and the space behind it, and returns the word.
std::string_view TakeWord(std::string_view& text) {
  std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

}  // namespace

std::optional<BreakpointNotice> ParseBreakpointLine(std::string_view line) {
  const std::string_view kind = TakeWord(line);
  const auto rank = ParseNumber<int>(TakeWord(line));
  const auto process = ParseNumber<pid_t>(TakeWord(line));
  const auto hold = ParseNumber<uint32_t>(kind == "borrows" ? TakeWord(line) : line);
  if (!rank || *rank < 0 || !process || *process < 1) return std::nullopt;
  if (!hold || *hold < 1 || *hold > kMaxHold) return std::nullopt;
  using Kind = BreakpointNotice::Kind;
  if (kind == "borrows") {
    const auto pipe = ParseNumber<int>(line);
    if (!pipe || *pipe < 0) return std::nullopt;
    return BreakpointNotice{Kind::kBorrows, *rank, *process, *hold, *pipe};
  }
  if (kind == "stopped") return BreakpointNotice{Kind::kStopped, *rank, *process, *hold};
  if (kind == "returned") return BreakpointNotice{Kind::kReturned, *rank, *process, *hold};
  if (kind == "passed") return BreakpointNotice{Kind::kPassed, *rank, *process, *hold};
  return std::nullopt;
}

Result<std::unique_ptr<BreakpointPipe>> BreakpointPipe::Create(
    Loop& loop, std::function<void(const BreakpointNotice&)> on_notice) {
  std::unique_ptr<BreakpointPipe> breakpoints(new BreakpointPipe(std::move(on_notice)));
  auto pipe = LineFifo::CreateUnnamed(
      loop, [raw = breakpoints.get()](std::string_view line) { raw->OnLine(line); });
  if (!pipe) return std::move(pipe).error();
  breakpoints->pipe_ = std::move(*pipe);
  return breakpoints;
}

void BreakpointPipe::OnLine(std::string_view line) {
  if (auto notice = ParseBreakpointLine(line)) return on_notice_(*notice);
  if (std::exchange(warned_, true)) return;
  LogWarn("RANKRUN_BREAKPOINT_PIPE: ignored \"" + OneLine(line, kShownCharacters) +
          "\"; want \"stopped RANK PID NUMBER\", \"borrows RANK PID NUMBER DESCRIPTOR\" or "
          "\"passed RANK PID NUMBER\"");
}

}  // namespace rankrun::agent

#include "agent/report/attempt_record.h"

#include <string_view>

#include "agent/job/exit_codes.h"
#include "base/format.h"
#include "base/printable.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxScope = 300;  // in characters

// Explains 128+n, with which a shell exits if signal n killed its program.
std::string DescribeExitCode(int code) {
  constexpr int kShellsBase = 128;
  constexpr int kMaxSignals = 64;
  std::string how = "exit code " + std::to_string(code);
  if (code <= kShellsBase || code > kShellsBase + kMaxSignals) return how;
  return how + " (as a shell says: killed by " + SignalName(code - kShellsBase) + ")";
}

}  // namespace

std::string HowItEnded(const WorkerRecord& worker) {
  const bool has_left = worker.exit && worker.exit->succeeded() && worker.sent_signal == 0;
  if (!worker.hang.empty()) return (has_left ? "" : "hung: ") + worker.hang;
  if (!worker.exit) return "could not be started: " + worker.start_error->message;
  bool by_signal = worker.exit->signaled;
  std::string how = by_signal ? "killed by " + SignalName(worker.exit->value)
                              : DescribeExitCode(worker.exit->value);
  if (by_signal && worker.timer && worker.exit->value == worker.timer->signal_number) {
    return how + ", its timer \"" + OneLine(worker.timer->scope, kMaxScope) + "\" had expired " +
           FormatSeconds(worker.ended - worker.timer->at) + " before";
  }
  if (by_signal && worker.exit->value == worker.sent_signal) return how + ", sent by rankrun";
  if (by_signal && worker.exit->value == worker.passed_signal) {
    return how + ", passed on by rankrun";
  }
  if (worker.sent_signal != 0) {
    return how + ", after rankrun had sent " + SignalName(worker.sent_signal);
  }
  if (!by_signal) return how;
  return how + ", not sent by rankrun" + (worker.kill_note.empty() ? "" : "; " + worker.kill_note);
}

std::string PeerDeathMessage(const WorkerRecord& worker, const std::string& node_name) {
  std::string text = "rank " + std::to_string(worker.global_rank);
  if (!node_name.empty()) text += " on node " + node_name;
  if (worker.exit) text += worker.exit->signaled ? " was" : " ended with";
  return OneLine(text + " " + HowItEnded(worker));
}

std::string ParentErrorFile(const std::vector<std::string>& environment) {
  constexpr std::string_view kVariable = "TORCHELASTIC_ERROR_FILE=";
  for (const std::string& entry : environment) {
    if (entry.starts_with(kVariable)) return entry.substr(kVariable.size());
  }
  return "";
}

int ExitCodeOf(const WorkerRecord& cause) {
  if (!cause.hang.empty()) return kExitHang;
  // The same codes as in shells.
  constexpr int kNotFound = 127;
  constexpr int kCannotExecute = 126;
  constexpr int kException = 1;
  // It was failing when our signal killed it, so its own code is unknown.
  bool cut_short = cause.exit && cause.exit->signaled && cause.exit->value == cause.sent_signal;
  bool left_early = !cause.failed();  // the others failed
  if (cut_short || left_early) return kException;
  if (cause.exit) return cause.exit->ShellCode();
  bool found = !cause.start_error || cause.start_error->code != ErrorCode::kNotFound;
  return found ? kCannotExecute : kNotFound;
}

}  // namespace rankrun::agent

#include "agent/health/condition.h"

namespace rankrun::agent {
namespace {

constexpr double kBusyShare = 0.5;             // of a core, by any thread
constexpr double kBusyShareWhenRunning = 0.1;  // of a core, if the main thread is in no call

bool IsHeld(const WorkerSample& sample) {
  return sample.is_at_prompt || IsBreakpointWait(sample.awaited) ||
         (sample.process && sample.process->tracer != 0);
}

bool IsBusy(const ProcessFacts& facts, const RecentWork& work) {
  if (work.cpu_share >= kBusyShare) return true;
  if (facts.call != CallKind::kNone) return false;
  // On a machine with too much to do, a thread may be ready to run and use little.
  return facts.state == 'R' || work.cpu_share >= kBusyShareWhenRunning;
}

Condition ByProcess(const ProcessFacts& facts, const RecentWork& work) {
  if (facts.state == 'T') return Condition::kStopped;
  if (work.moves) return Condition::kMoves;
  // A single look may meet a short wait for a disk.
  if (facts.state == 'D' && work.was_in_kernel) return Condition::kInKernel;
  if (IsBusy(facts, work)) return Condition::kBusy;
  switch (facts.call) {
    case CallKind::kSleep:
      return Condition::kSleeps;
    case CallKind::kFile:
      // The other end of a pipe is a process of the worker itself.
      return facts.file.starts_with("pipe:") ? Condition::kWaits : Condition::kInFile;
    case CallKind::kLock:
    case CallKind::kPoll:
    case CallKind::kPeer:
    case CallKind::kChild:
    case CallKind::kOther:
      return Condition::kWaits;
    case CallKind::kNone:
      return Condition::kUnknown;
  }
  return Condition::kUnknown;
}

std::string CallOf(const ProcessFacts& facts) {
  return (facts.call_name.empty() ? "" : " (" + facts.call_name + ")") +
         (facts.file_detail.empty() ? "" : ", " + facts.file_detail);
}

std::string InKernel(const ProcessFacts& facts) {
  std::string text = "stuck in the kernel (state D";
  if (!facts.wait_channel.empty()) text += " in " + facts.wait_channel;
  text += ")";
  if (!facts.call_name.empty()) text += " in " + facts.call_name;
  if (!facts.file.empty()) text += " of " + facts.file;
  return facts.file_detail.empty() ? text : text + ", " + facts.file_detail;
}

// Returns the verb of a call on a file, by the call's name.
std::string VerbOf(const std::string& call) {
  const auto has = [&](const char* part) { return call.find(part) != std::string::npos; };
  if (call == "flock" || call == "fcntl") return "waiting for the lock of ";
  if (has("open")) return "opening ";
  if (has("stat") || has("access") || has("readlink")) return "looking up ";
  if (has("write")) return "writing ";
  if (has("read")) return "reading ";
  if (has("sync")) return "syncing ";
  if (has("getdents")) return "listing ";
  if (has("unlink")) return "removing ";
  if (has("rename")) return "renaming ";
  if (has("close")) return "closing ";
  return "busy with ";
}

std::string InFile(const ProcessFacts& facts) {
  return VerbOf(facts.call_name) + (facts.file.empty() ? "a file" : facts.file) + CallOf(facts);
}

std::string Waiting(const ProcessFacts& facts) {
  std::string target = facts.call == CallKind::kLock    ? " for a lock"
                       : facts.call == CallKind::kPeer  ? " for a connection"
                       : facts.call == CallKind::kChild ? " for a child process"
                       : facts.call == CallKind::kPoll  ? " for connections"
                       : facts.file.empty()             ? ""
                                                        : " for " + facts.file;
  return "waiting" + target + CallOf(facts);
}

std::string Held(const WorkerSample& sample) {
  if (sample.is_at_prompt) return "waiting for input from the terminal";
  if (!sample.awaited.empty()) return "held at a breakpoint";
  return "held by " + sample.process->tracer_name + " (pid " +
         std::to_string(sample.process->tracer) + ")";
}

std::string Participle(const WorkerSample& sample, Condition condition) {
  const ProcessFacts facts = sample.process.value_or(ProcessFacts{});
  switch (condition) {
    case Condition::kNotStarted:
      return "not running yet";
    case Condition::kEnded:
      return "no longer running (exit code 0)";
    case Condition::kHeld:
      return Held(sample);
    case Condition::kSaving:
      return "saving a checkpoint";
    case Condition::kStopped:
      return "stopped (SIGSTOP)";
    case Condition::kInKernel:
      return InKernel(facts);
    case Condition::kMoves:
      return "slow, but makes progress";
    case Condition::kBusy:
      return "spinning or computing (uses the processor)";
    case Condition::kSleeps:
      return "sleeping" + CallOf(facts);
    case Condition::kInFile:
      return InFile(facts);
    case Condition::kWaits:
      return Waiting(facts);
    case Condition::kUnknown:
      break;
  }
  return "in another part of its program";
}

}  // namespace

Condition ConditionOf(const WorkerSample& sample, const RecentWork& work) {
  if (sample.has_ended) return Condition::kEnded;
  if (sample.pid == 0) return Condition::kNotStarted;
  if (IsHeld(sample)) return Condition::kHeld;
  if (sample.is_saving) return Condition::kSaving;
  if (sample.process) return ByProcess(*sample.process, work);
  if (work.moves) return Condition::kMoves;
  return work.cpu_share >= kBusyShare ? Condition::kBusy : Condition::kUnknown;
}

bool IsHalted(Condition condition) {
  return condition == Condition::kEnded || condition == Condition::kHeld ||
         condition == Condition::kStopped || condition == Condition::kInKernel;
}

bool MayHang(Condition condition) {
  return condition != Condition::kHeld && condition != Condition::kSaving &&
         condition != Condition::kMoves && condition != Condition::kNotStarted;
}

std::string ConditionInWords(const WorkerSample& sample, Condition condition, size_t count) {
  return (count == 1 ? "is " : "are ") + Participle(sample, condition);
}

}  // namespace rankrun::agent

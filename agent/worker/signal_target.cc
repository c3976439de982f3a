#include "agent/worker/signal_target.h"

#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "agent/process/descendants.h"

namespace rankrun::agent {
namespace {

constexpr std::array<std::string_view, 8> kShells = {"sh",  "bash", "dash", "ash",
                                                     "ksh", "mksh", "zsh",  "busybox"};

// Returns whether a line such as "SigCgt:\t0000000000004002" has the bit of a signal.
bool HasSignal(std::string_view status, std::string_view line, int signal_number) {
  size_t at = status.find(line);
  if (at == std::string_view::npos) return false;
  at = status.find_first_not_of(" \t", at + line.size());
  if (at == std::string_view::npos) return false;
  uint64_t mask = 0;
  std::from_chars(status.data() + at, status.data() + status.size(), mask, 16);
  return (mask >> (signal_number - 1) & 1) != 0;
}

bool IsShell(std::string_view program) {
  return std::ranges::count(kShells, program.substr(program.rfind('/') + 1)) > 0;
}

bool IsWaitingShell(const SignalFacts& facts) {
  if (!IsShell(facts.program)) return false;
  const std::string_view where = facts.wait_channel;
  const bool is_unknown = where.empty() || where == "0";
  return is_unknown || where == "do_wait" || where.find("sigsuspend") != where.npos;  // zsh
}

std::string ProgramOf(pid_t pid) {
  std::array<char, PATH_MAX> path{};
  std::string link = "/proc/" + std::to_string(pid) + "/exe";
  ssize_t length = readlink(link.c_str(), path.data(), path.size());
  return {path.data(), static_cast<size_t>(std::max<ssize_t>(length, 0))};
}

}  // namespace

bool Handles(const SignalFacts& facts, int signal_number) {
  return HasSignal(facts.status, "SigBlk:", signal_number) ||
         HasSignal(facts.status, "SigIgn:", signal_number) ||
         HasSignal(facts.status, "SigCgt:", signal_number);
}

bool IsForProcessAlone(const SignalFacts& facts, int signal_number) {
  bool is_of_terminal = signal_number == SIGINT || signal_number == SIGQUIT;
  if (is_of_terminal || signal_number == SIGKILL) return false;
  bool takes = HasSignal(facts.status, "SigBlk:", signal_number) ||
               HasSignal(facts.status, "SigCgt:", signal_number);
  return takes && !IsWaitingShell(facts);
}

bool HandlesSignal(pid_t pid, int signal_number) {
  const std::string status = ReadOfProcess(pid, "status");
  return Handles({.status = status, .program = {}, .wait_channel = {}}, signal_number);
}

bool TakesSignalAlone(pid_t pid, std::string_view status, int signal_number) {
  SignalFacts facts{.status = status, .program = {}, .wait_channel = {}};
  if (!IsForProcessAlone(facts, signal_number)) return false;
  const std::string program = ProgramOf(pid);
  if (!IsShell(program)) return true;
  const std::string wait_channel = ReadOfProcess(pid, "wchan");
  facts.program = program;
  facts.wait_channel = wait_channel;
  return IsForProcessAlone(facts, signal_number);
}

}  // namespace rankrun::agent

#pragma once

#include <signal.h>

#include <algorithm>
#include <array>
#include <span>

namespace rankrun::agent {

// Signals that end the job gently unless --signals-to-handle says otherwise,
// and those that are passed to the workers.
inline constexpr std::array kEndSignals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
inline constexpr std::array kPassedSignals = {SIGUSR1, SIGUSR2};

// What --signals-to-handle may name: signals whose default is to end a process,
// but for those that tell of its own faults. The guardian forwards all of
// them, since it starts before the command line is read.
inline constexpr std::array kForwardedSignals = {SIGHUP,    SIGINT,  SIGQUIT,   SIGTERM, SIGUSR1,
                                                 SIGUSR2,   SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU,
                                                 SIGSTKFLT, SIGIO,   SIGPWR};

inline bool CanEndJob(int signal_number) {
  return std::ranges::find(kForwardedSignals, signal_number) != kForwardedSignals.end();
}

enum class SignalMeaning {
  kStop,  // the job is to end gently
  kKill,  // it is to end at once: the signal's default action
  kPass,  // to the workers
};

// `end_signals` are those that the job handles. Pure.
inline SignalMeaning MeaningOf(int signal_number, std::span<const int> end_signals) {
  if (std::ranges::find(end_signals, signal_number) != end_signals.end()) {
    return SignalMeaning::kStop;
  }
  bool passed = std::ranges::find(kPassedSignals, signal_number) != kPassedSignals.end();
  return passed || !CanEndJob(signal_number) ? SignalMeaning::kPass : SignalMeaning::kKill;
}

// An inherited SIG_IGN (nohup) stays.
inline bool IsIgnored(int signal_number) {
  struct sigaction action;
  sigaction(signal_number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace rankrun::agent

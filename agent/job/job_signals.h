#pragma once

#include <signal.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace rankrun::agent {

// Signals that end the job gently by default (--signals-to-handle changes the
// list), and signals that rankrun passes to the workers.
inline constexpr std::array kEndSignals = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
inline constexpr std::array kPassedSignals = {SIGUSR1, SIGUSR2};

// Returns whether a signal only notifies workers, and must end no process.
inline bool IsNotice(int signal_number) {
  return std::ranges::find(kPassedSignals, signal_number) != kPassedSignals.end();
}

// Signals that a shell without job control ignores in `command &`.
inline constexpr std::array kInterrupts = {SIGINT, SIGQUIT};

// Signals that --signals-to-handle may name: those that end a process by
// default, except those that report a fault of the process itself. The guardian
// forwards all of them because it starts before the command line is read.
inline constexpr std::array kForwardedSignals = {SIGHUP,    SIGINT,  SIGQUIT,   SIGTERM, SIGUSR1,
                                                 SIGUSR2,   SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU,
                                                 SIGSTKFLT, SIGIO,   SIGPWR};

inline bool CanEndJob(int signal_number) {
  return std::ranges::find(kForwardedSignals, signal_number) != kForwardedSignals.end();
}

// Returns the kForwardedSignals whose bits are set.
inline std::vector<int> SignalsIn(uint64_t bits) {
  std::vector<int> numbers;
  for (int number : kForwardedSignals) {
    if ((bits >> number & 1) != 0) numbers.push_back(number);
  }
  return numbers;
}

enum class SignalMeaning {
  kStop,  // end the job gently
  kKill,  // end the job at once: the signal's default action
  kPass,  // pass the signal to the workers
};

// Returns how the job reacts to a signal. `end_signals` are the signals that
// end it gently. Pure.
inline SignalMeaning MeaningOf(int signal_number, std::span<const int> end_signals) {
  if (std::ranges::find(end_signals, signal_number) != end_signals.end()) {
    return SignalMeaning::kStop;
  }
  return IsNotice(signal_number) || !CanEndJob(signal_number) ? SignalMeaning::kPass
                                                              : SignalMeaning::kKill;
}

// Returns whether this process ignores a signal. An inherited SIG_IGN (nohup)
// stays in force.
inline bool IsIgnored(int signal_number) {
  struct sigaction action;
  sigaction(signal_number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace rankrun::agent

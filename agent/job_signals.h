#pragma once

#include <signal.h>

#include <array>

namespace rankrun::agent {

// Signals that end the job, and those that are passed to the workers.
inline constexpr std::array kEndSignals = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
inline constexpr std::array kPassedSignals = {SIGUSR1, SIGUSR2};

inline bool EndsJob(int signal_number) {
  for (int number : kEndSignals) {
    if (number == signal_number) return true;
  }
  return false;
}

// An inherited SIG_IGN (nohup) stays.
inline bool IsIgnored(int signal_number) {
  struct sigaction action;
  sigaction(signal_number, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace rankrun::agent

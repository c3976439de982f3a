#pragma once

#include <signal.h>

namespace rankrun::agent {

// Returns the signals that the guardian handles: those that are not ignored.
sigset_t HandledSignals();

// Changes the mask of this process for one signal, as sigprocmask.
void ChangeMask(int how, int signal_number);

// Ends this process by the signal, without a core file.
[[noreturn]] void EndBySignal(int signal_number);

}  // namespace rankrun::agent

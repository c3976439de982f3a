#include "agent/guardian/guardian_signals.h"

#include <sys/resource.h>
#include <unistd.h>

#include "agent/job/job_signals.h"
#include "base/process/spawn.h"

namespace rankrun::agent {
namespace {

void AddUnlessIgnored(sigset_t& set, int signal_number) {
  if (!IsIgnored(signal_number)) sigaddset(&set, signal_number);
}

}  // namespace

sigset_t HandledSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : kForwardedSignals) AddUnlessIgnored(set, number);
  // PID 1 cannot stop itself, and nobody would continue its workers.
  if (getpid() != 1) AddUnlessIgnored(set, SIGTSTP);
  sigaddset(&set, SIGCONT);
  sigaddset(&set, SIGCHLD);
  sigaddset(&set, SIGWINCH);  // of our terminal; the agent's session does not get it
  return set;
}

void ChangeMask(int how, int signal_number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  sigprocmask(how, &set, nullptr);
}

void EndBySignal(int signal_number) {
  if (getpid() == 1) _exit(128 + signal_number);  // the kernel drops signals of PID 1 to itself
  rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  signal(signal_number, SIG_DFL);
  kill(getpid(), signal_number);
  ChangeMask(SIG_UNBLOCK, signal_number);
  _exit(128 + signal_number);
}

}  // namespace rankrun::agent

#include "agent/supervisor/signal_catcher.h"

#include <signal.h>

#include <utility>

#include "agent/job/job_signals.h"
#include "base/uv/uv_loop.h"

namespace rankrun::agent {

Result<void> SignalCatcher::Open(Loop& loop, const Callbacks& callbacks) {
  for (int number : kForwardedSignals) {
    auto caught =
        Catch(loop, number, [on_signal = callbacks.on_signal, number] { on_signal(number); });
    if (!caught) return caught;
  }
  if (auto caught = Catch(loop, SIGCHLD, callbacks.on_child); !caught) return caught;
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  return {};
}

Result<void> SignalCatcher::Catch(Loop& loop, int signal_number, std::function<void()> caught) {
  if (IsIgnored(signal_number)) return {};
  auto signal = Signal::Catch(loop, signal_number, std::move(caught));
  if (!signal) return std::move(signal).error();
  signals_.push_back(std::move(*signal));
  return {};
}

}  // namespace rankrun::agent

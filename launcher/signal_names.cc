#include "launcher/signal_names.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/format.h"
#include "launcher/nearest_name.h"
#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

constexpr int kLastPlainSignal = 31;

constexpr std::array kUncatchable = {SIGKILL, SIGSTOP};
// Job control, the ends of children, and what a fault in rankrun itself raises.
constexpr std::array kOurs = {SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGSEGV,
                              SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGABRT, SIGPIPE};

Error Wrong(const std::string& text) { return {ErrorCode::kInvalid, text}; }

Result<int> ParseSignal(std::string_view typed) {
  std::string_view name = typed.starts_with("SIG") ? typed.substr(3) : typed;
  std::vector<std::string_view> names;
  for (int number = 1; number <= kLastPlainSignal; ++number) {
    const char* known = sigabbrev_np(number);
    if (known == nullptr) continue;
    if (name != known) {
      names.push_back(known);
    } else if (std::ranges::find(kUncatchable, number) != kUncatchable.end()) {
      return Wrong(SignalName(number) + " cannot be handled by any program");
    } else if (std::ranges::find(kOurs, number) != kOurs.end()) {
      return Wrong(SignalName(number) + " cannot be in the list: rankrun needs it itself");
    } else {
      return number;
    }
  }
  std::string unknown = "unknown signal \"" + std::string(typed) + "\"";
  auto nearest = NearestName(name, names);
  if (!nearest) return Wrong(unknown + "; want names as SIGTERM,SIGINT");
  return Wrong(unknown + "; did you mean SIG" + std::string(*nearest) + "?");
}

}  // namespace

Result<std::vector<int>> ParseSignals(std::string_view list) {
  std::vector<int> signals;
  for (std::string_view name : SplitAtCommas(list)) {
    auto number = ParseSignal(Stripped(name));
    if (!number) return std::move(number).error();
    if (std::ranges::find(signals, *number) == signals.end()) signals.push_back(*number);
  }
  return signals;
}

}  // namespace rankrun::launcher

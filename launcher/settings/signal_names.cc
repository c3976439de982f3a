#include "launcher/settings/signal_names.h"

#include <signal.h>
#include <string.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/format.h"
#include "launcher/flags/nearest_name.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

constexpr int kLastPlainSignal = 31;

constexpr std::array kUncatchable = {SIGKILL, SIGSTOP};
// Signals of job control, of exiting children and of faults in rankrun itself.
constexpr std::array kOurs = {SIGCHLD, SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU, SIGSEGV,
                              SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGABRT, SIGPIPE};

Error Wrong(const std::string& text) { return {ErrorCode::kInvalid, text}; }

template <size_t size>
bool IsOneOf(const std::array<int, size>& numbers, int number) {
  return std::ranges::find(numbers, number) != numbers.end();
}

Error UnknownSignal(std::string_view typed) {
  std::string name = Uppercase(std::string(typed));
  if (name.starts_with("SIG")) name.erase(0, 3);
  std::vector<std::string_view> names;
  for (int number = 1; number <= kLastPlainSignal; ++number) {
    const char* known = sigabbrev_np(number);
    bool may_stand = known != nullptr && !IsOneOf(kUncatchable, number) && !IsOneOf(kOurs, number);
    if (may_stand) names.push_back(known);
  }
  std::string unknown = "unknown signal \"" + std::string(typed) + "\"";
  auto nearest = NearestName(name, names);
  if (!nearest || name.empty()) return Wrong(unknown + "; want names as SIGTERM,SIGINT");
  return Wrong(unknown + "; did you mean SIG" + std::string(*nearest) + "?");
}

Result<int> ParseSignal(std::string_view typed) {
  std::string_view name = typed.starts_with("SIG") ? typed.substr(3) : typed;
  for (int number = 1; number <= kLastPlainSignal; ++number) {
    const char* known = sigabbrev_np(number);
    if (known == nullptr || name != known) continue;
    if (IsOneOf(kUncatchable, number)) {
      return Wrong(SignalName(number) + " cannot be handled by any program");
    }
    if (IsOneOf(kOurs, number)) {
      return Wrong(SignalName(number) + " cannot be in the list: rankrun needs it itself");
    }
    return number;
  }
  return UnknownSignal(typed);
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

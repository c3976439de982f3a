#include "launcher/command_line.h"

#include <algorithm>
#include <sstream>

#include "agent/job_signals.h"
#include "base/format.h"
#include "launcher/flag_parser.h"
#include "launcher/flags.h"

namespace rankrun::launcher {
namespace {

Result<void> CheckTogether(const Options& options) {
  if (options.help || options.version) return {};
  if (options.program.empty() || options.program[0].empty()) {
    return Error{ErrorCode::kInvalid,
                 "no program given; usage: rankrun [flags] program [arguments]"};
  }
  if (options.module && options.no_python) {
    return Error{ErrorCode::kInvalid, "--module and --no-python exclude each other"};
  }
  return {};
}

// "TERM,SIGUSR1".
Result<std::vector<int>> ParseSignals(const std::string& names) {
  std::vector<int> signals;
  std::istringstream parts(names);
  for (std::string name; std::getline(parts, name, ',');) {
    auto named = std::ranges::find_if(agent::kForwardedSignals, [&](int number) {
      return SignalName(number) == name || SignalName(number) == "SIG" + name;
    });
    if (named == agent::kForwardedSignals.end()) {
      return Error{ErrorCode::kInvalid,
                   "--signals-to-handle: want names of signals that can end a job, as "
                   "SIGTERM,SIGUSR1; got \"" +
                       name + "\""};
    }
    signals.push_back(*named);
  }
  return signals;
}

}  // namespace

Result<Options> ParseCommandLine(std::span<const std::string> arguments) {
  auto split = SplitCommandLine(arguments);
  if (!split) return std::move(split).error();
  auto flags = ParseFlags(RankrunFlags(), split->flags);
  if (!flags) return std::move(flags).error();
  Options options;
  options.workers = flags->Count("nproc-per-node").value_or(options.workers);
  options.max_restarts = flags->Count("max-restarts").value_or(options.max_restarts);
  options.shutdown_timeout = flags->Seconds("shutdown-timeout").value_or(options.shutdown_timeout);
  options.save_timeout = flags->Seconds("save-timeout").value_or(options.save_timeout);
  options.time_limit = flags->Seconds("timeout");
  options.continue_on_failure = flags->Has("continue-on-failure");
  if (auto names = flags->Text("signals-to-handle")) {
    auto signals = ParseSignals(*names);
    if (!signals) return std::move(signals).error();
    options.end_signals = std::move(*signals);
  }
  options.master_addr = flags->Text("master-addr");
  options.master_port = flags->Port("master-port");
  options.store_max_value = flags->Size("store-max-value");
  options.no_python = flags->Has("no-python");
  options.module = flags->Has("module");
  options.help = flags->Has("help");
  options.version = flags->Has("version");
  options.program = std::move(split->words);
  if (auto checked = CheckTogether(options); !checked) return std::move(checked).error();
  return options;
}

std::string HelpText() {
  return FormatHelp(
      RankrunFlags(), "[flags] program [arguments]",
      "Starts one worker per slot, hosts the store in which they meet, watches them and\n"
      "restarts them when one fails.");
}

}  // namespace rankrun::launcher

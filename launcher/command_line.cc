#include "launcher/command_line.h"

#include "launcher/flag_parser.h"
#include "launcher/flags.h"
#include "launcher/help.h"

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

#include "cli/command.h"

#include <algorithm>

#include "base/version.h"
#include "cli/jobs/job_commands.h"
#include "cli/output.h"
#include "cli/report/report_command.h"
#include "cli/secret_command.h"
#include "cli/store_commands.h"
#include "cli/trace_command.h"
#include "launcher/flags/help.h"
#include "launcher/flags/marked_text.h"
#include "launcher/flags/nearest_name.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;
using launcher::FlagsEnd;
using launcher::FlagTable;

constexpr Flag kTopFlags[] = {kVersionFlag, kHelpFlag};
constexpr Flag kGroupFlags[] = {kHelpFlag};
constexpr const char* kStoreHelp = "Access a key-value store; rankctl store --help lists how.\n";

int Refuse(const Error& error) { return Fail(error.message, kExitUsage); }

// Refuses an argument that stands in the place of a command.
int RefuseName(std::string_view group, std::string_view typed,
               const std::vector<std::string_view>& names) {
  std::string text = "unknown command \"" + std::string(group) + " " + std::string(typed) + "\"; ";
  auto nearest = launcher::NearestName(typed, names);
  text += nearest ? "did you mean \"" + std::string(group) + " " + std::string(*nearest) + "\"?"
                  : std::string(group) + " --help lists all";
  return Fail(text, kExitUsage);
}

std::string ListOf(std::span<const Command> commands) {
  constexpr size_t kColumn = 20;
  std::string text = "Commands:\n";
  for (const Command& command : commands) {
    std::string entry = "  " + std::string(command.name) + " " + std::string(command.operands);
    entry.resize(std::max(entry.size() + 1, kColumn), ' ');
    text += entry + launcher::PlainText(command.help) + "\n";
  }
  return text;
}

int RunCommand(const Command& command, std::span<const std::string> arguments) {
  FlagTable table{.command = command.title, .flags = command.flags};
  auto read = launcher::ParseArguments(table, FlagsEnd::kNowhere, arguments);
  if (!read) return Refuse(read.error());
  if (read->flags.Has("help")) {
    return Print(launcher::FormatHelp(table, UsageOf(command), launcher::PlainText(command.help)));
  }
  size_t count = read->positionals.size();
  if (count < command.least_operands || count > command.most_operands) {
    std::string got = std::to_string(count) + (count == 1 ? " operand" : " operands");
    return Fail(got + " given; usage: " + std::string(command.title) + " " + UsageOf(command),
                kExitUsage);
  }
  return command.run({std::move(read->flags), std::move(read->positionals)});
}

}  // namespace

std::vector<Command> TopCommands() {
  std::vector<Command> commands(JobCommands().begin(), JobCommands().end());
  for (const Command& command : {ReportCommand(), TraceCommand(), SecretCommand()}) {
    commands.push_back(command);
  }
  return commands;
}

std::string UsageOf(const Command& command) {
  return "[flags]" + (command.operands.empty() ? "" : " " + std::string(command.operands));
}

int RunGroup(std::string_view group, std::span<const Command> commands,
             std::span<const std::string> arguments) {
  FlagTable table{.command = group, .flags = kGroupFlags};
  auto read = launcher::ParseArguments(table, FlagsEnd::kAtCommand, arguments);
  if (!read) return Refuse(read.error());
  std::string usage = "COMMAND [flags] [operands]";
  if (read->flags.Has("help")) {
    return Print(launcher::FormatHelp(table, usage, ListOf(commands)));
  }
  if (read->positionals.empty()) {
    return Fail("no command given; usage: " + std::string(group) + " " + usage, kExitUsage);
  }
  std::vector<std::string_view> names;
  for (const Command& command : commands) {
    if (command.name == read->positionals[0]) {
      return RunCommand(command, std::span(read->positionals).subspan(1));
    }
    names.push_back(command.name);
  }
  return RefuseName(group, read->positionals[0], names);
}

int RunRankctl(std::span<const std::string> arguments) {
  FlagTable table{.command = "rankctl", .flags = kTopFlags};
  auto read = launcher::ParseArguments(table, FlagsEnd::kAtCommand, arguments);
  if (!read) return Refuse(read.error());
  std::string usage = "COMMAND [flags] [operands]";
  if (read->flags.Has("help")) {
    return Print(launcher::FormatHelp(table, usage,
                                      "Inspects running jobs, their key-value stores, the "
                                      "reports on their failures, their traces, the stacks of "
                                      "processes, and the user's job secret.\n" +
                                          ListOf(TopCommands()) + "  store COMMAND     " +
                                          kStoreHelp));
  }
  if (read->flags.Has("version")) {
    return Print(std::string("rankctl ") + kVersion + "\n");
  }
  if (read->positionals.empty()) {
    return Fail("no command given; usage: rankctl " + usage + "; rankctl --help lists all",
                kExitUsage);
  }
  auto rest = std::span(read->positionals).subspan(1);
  std::vector<Command> commands = TopCommands();
  std::vector<std::string_view> names{"store"};
  for (const Command& command : commands) {
    if (read->positionals[0] == command.name) return RunCommand(command, rest);
    names.push_back(command.name);
  }
  if (read->positionals[0] == "store") return RunGroup("rankctl store", StoreCommands(), rest);
  return RefuseName("rankctl", read->positionals[0], names);
}

}  // namespace rankrun::cli

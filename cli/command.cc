#include "cli/command.h"

#include <algorithm>

#include "cli/output.h"
#include "cli/store_commands.h"
#include "launcher/help.h"
#include "launcher/nearest_name.h"
#include "launcher/version.h"

namespace rankrun::cli {
namespace {

using launcher::Flag;
using launcher::FlagsEnd;
using launcher::FlagTable;
using launcher::FlagValue;

constexpr Flag kTopFlags[] = {
    {"version", 0, FlagValue::kNone, 0, 0, "", "", false, "Print the version and exit."}, kHelp};
constexpr Flag kGroupFlags[] = {kHelp};

int Refuse(const Error& error) { return Fail(error.message, kExitUsage); }

// One that stands where the name of a command should.
int RefuseName(std::string_view group, std::string_view typed,
               const std::vector<std::string_view>& names) {
  std::string text = "unknown command \"" + std::string(group) + " " + std::string(typed) + "\"; ";
  auto nearest = launcher::NearestName(typed, names);
  text += nearest ? "did you mean \"" + std::string(group) + " " + std::string(*nearest) + "\"?"
                  : std::string(group) + " --help lists all";
  return Fail(text, kExitUsage);
}

std::string Usage(const Command& command) {
  return "[flags]" + (command.operands.empty() ? "" : " " + std::string(command.operands));
}

std::string ListOf(std::span<const Command> commands) {
  constexpr size_t kColumn = 20;
  std::string text = "Commands:\n";
  for (const Command& command : commands) {
    std::string entry = "  " + std::string(command.name) + " " + std::string(command.operands);
    entry.resize(std::max(entry.size() + 1, kColumn), ' ');
    text += entry + std::string(command.help) + "\n";
  }
  return text;
}

struct Words {
  launcher::ParsedFlags flags;
  std::vector<std::string> words;
};

Result<Words> Read(const FlagTable& table, FlagsEnd end, std::span<const std::string> arguments) {
  auto split = launcher::SplitFlags(table, end, arguments);
  if (!split) return std::move(split).error();
  auto flags = launcher::ParseFlags(table, split->flags);
  if (!flags) return std::move(flags).error();
  return Words{std::move(*flags), std::move(split->words)};
}

int RunCommand(const Command& command, std::span<const std::string> arguments) {
  FlagTable table{.command = command.title, .flags = command.flags};
  auto read = Read(table, FlagsEnd::kNowhere, arguments);
  if (!read) return Refuse(read.error());
  if (read->flags.Has("help")) {
    return Print(launcher::FormatHelp(table, Usage(command), std::string(command.help)));
  }
  size_t count = read->words.size();
  if (count < command.least_operands || count > command.most_operands) {
    std::string got = std::to_string(count) + (count == 1 ? " operand" : " operands");
    return Fail(got + " given; usage: " + std::string(command.title) + " " + Usage(command),
                kExitUsage);
  }
  return command.run({std::move(read->flags), std::move(read->words)});
}

}  // namespace

int RunGroup(std::string_view group, std::span<const Command> commands,
             std::span<const std::string> arguments) {
  FlagTable table{.command = group, .flags = kGroupFlags};
  auto read = Read(table, FlagsEnd::kAtCommand, arguments);
  if (!read) return Refuse(read.error());
  std::string usage = "COMMAND [flags] [operands]";
  if (read->flags.Has("help")) {
    return Print(launcher::FormatHelp(table, usage, ListOf(commands)));
  }
  if (read->words.empty()) {
    return Fail("no command given; usage: " + std::string(group) + " " + usage, kExitUsage);
  }
  std::vector<std::string_view> names;
  for (const Command& command : commands) {
    if (command.name == read->words[0]) {
      return RunCommand(command, std::span(read->words).subspan(1));
    }
    names.push_back(command.name);
  }
  return RefuseName(group, read->words[0], names);
}

int RunRankctl(std::span<const std::string> arguments) {
  FlagTable table{.command = "rankctl", .flags = kTopFlags};
  auto read = Read(table, FlagsEnd::kAtCommand, arguments);
  if (!read) return Refuse(read.error());
  std::string usage = "store COMMAND [flags] [operands]";
  if (read->flags.Has("help")) {
    return Print(launcher::FormatHelp(table, usage,
                                      "Looks into the stores of distributed jobs.\n"
                                      "rankctl store --help lists the commands."));
  }
  if (read->flags.Has("version")) {
    return Print(std::string("rankctl ") + launcher::kVersion + "\n");
  }
  if (read->words.empty()) return Fail("no command given; usage: rankctl " + usage, kExitUsage);
  if (read->words[0] != "store") return RefuseName("rankctl", read->words[0], {"store"});
  return RunGroup("rankctl store", StoreCommands(), std::span(read->words).subspan(1));
}

}  // namespace rankrun::cli

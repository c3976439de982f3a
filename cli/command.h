#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/flags/flag_parser.h"

namespace rankrun::cli {

// The flag of every command.
inline constexpr launcher::Flag kHelpFlag{
    .name = "help", .letter = 'h', .help = "Print a summary of the flags and exit."};

// The flag of rankctl itself.
inline constexpr launcher::Flag kVersionFlag{.name = "version",
                                             .help = "Print the version and exit."};

// The parsed arguments of a command. The number of operands is one that the
// command accepts.
struct CommandLine {
  launcher::ParsedFlags flags;
  std::vector<std::string> operands;
};

// One command of a group. The parser, --help and the man page use the table.
// `help` and `details` are marked text (launcher/flags/marked_text.h).
struct Command {
  std::string_view title;          // "rankctl store get"
  std::string_view name;           // "get"
  std::string_view operands = {};  // "KEY..."; empty: none
  size_t least_operands = 0;
  size_t most_operands = 0;
  std::string_view help;     // for --help; opens the section in the man page
  std::string_view details;  // follows `help` in the man page
  std::span<const launcher::Flag> flags;
  int (*run)(const CommandLine& line);  // returns the exit code
};

// Returns the commands of rankctl itself, in the order of --help. All others are of "rankctl
// store".
std::vector<Command> TopCommands();

// Returns how the operands of a command are written: "[flags] KEY".
std::string UsageOf(const Command& command);

// Runs the command of a group ("rankctl store") that `arguments` begin with.
// Returns the exit code.
int RunGroup(std::string_view group, std::span<const Command> commands,
             std::span<const std::string> arguments);

// Runs rankctl. `arguments` are those after the program's name. Returns the exit
// code.
int RunRankctl(std::span<const std::string> arguments);

}  // namespace rankrun::cli

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/flag_parser.h"

namespace rankrun::cli {

// The flag that every table has.
inline constexpr launcher::Flag kHelp{"help", 'h',   launcher::FlagValue::kNone, 0, 0, "",
                                      "",     false, "Print this text and exit."};

// What a command is run with. The operands are as many as it takes.
struct CommandLine {
  launcher::ParsedFlags flags;
  std::vector<std::string> operands;
};

// One command of a group. Parser, --help and the test of the man page use the
// table.
struct Command {
  std::string_view title;     // "rankctl store get"
  std::string_view name;      // "get"
  std::string_view operands;  // "KEY..."; empty: none
  size_t least_operands;
  size_t most_operands;
  std::string_view help;
  std::span<const launcher::Flag> flags;
  int (*run)(const CommandLine& line);  // returns the exit code
};

// Finds and runs the command of a group ("rankctl store") that `arguments`
// begin with. Returns the exit code.
int RunGroup(std::string_view group, std::span<const Command> commands,
             std::span<const std::string> arguments);

// All of rankctl. `arguments` are those after the program's name.
int RunRankctl(std::span<const std::string> arguments);

}  // namespace rankrun::cli

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace rankrun::launcher {

enum class FlagValue {
  kNone,     // a switch
  kCount,    // a whole number from `least` to `most`
  kPort,     // 0 to 65535
  kSeconds,  // a number of seconds, at least 0, fractions allowed
  kText,
};

// One flag. The parser and --help are made from the table; a test compares the
// man page with it.
struct Flag {
  std::string_view name;  // "nproc-per-node"
  char letter;            // 'n'; 0 for none
  FlagValue value;
  int least;  // of a kCount
  int most;
  std::string_view value_name;     // "N"
  std::string_view default_value;  // as shown; empty: none
  bool from_torchrun;              // has its name and meaning from there
  std::string_view help;
};

std::span<const Flag> Flags();

// A command line cut into its two parts.
struct SplitArguments {
  // "--name" or "--name=value", names as in the table.
  std::vector<std::string> flags;
  // The program and its arguments, untouched.
  std::vector<std::string> program;
};

// Finds where the program begins and brings the flags before it into one
// form: both spellings of torchrun (--max-restarts, --max_restarts), values
// attached or not, letters in clusters. The first "--", before the program or
// right after it, is swallowed, as torchrun does. Pure.
// Errors: kInvalid for an unknown flag (with the nearest known name), a
// missing value, or a value that a switch cannot take.
Result<SplitArguments> SplitCommandLine(std::span<const std::string> arguments);

}  // namespace rankrun::launcher

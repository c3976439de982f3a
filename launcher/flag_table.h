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
  kSize,     // bytes: 512, 8K, 64M, 1G, 2T
  kText,     // not empty
  kAnyText,  // may be empty
  kChoice,   // one of `choices`
  kFile,     // its name
  kFolder,   // its name
};

// Where else than on the command line a flag's value may stand.
enum class Elsewhere {
  kNowhere,
  kOurs,  // RANKRUN_<NAME>, and the file of --config
  kPet,   // those, and torchrun's PET_<NAME>
};

// One flag. The parser, --help, the completion of shells and what is read from
// variables and files are made from the table; a test compares the man page
// with it.
struct Flag {
  std::string_view name;  // "nproc-per-node"
  char letter;            // 'n'; 0 for none
  FlagValue value;
  int least;                       // of a kCount
  int most;                        // of a kCount; of a kSize in units of 1G, 0 for any
  std::string_view value_name;     // "N"
  std::string_view default_value;  // as shown; empty: none
  bool from_torchrun;              // has its name and meaning from there
  std::string_view help;
  std::string_view group = {};  // heading in --help; empty: the table's
  std::string_view choices =
      {};  // "spawn|fork": what a kChoice takes; of others, what shells offer
  Elsewhere elsewhere = Elsewhere::kNowhere;
  bool repeats = false;                 // every value counts, not only the last
  std::string_view last_variable = {};  // looked at where no other is set; empty: none
};

// The flags of one command.
struct FlagTable {
  std::string_view command;  // as its user calls it: "rankrun", "rankctl store get"
  std::span<const Flag> flags;
  std::string_view heading = "Flags";  // in --help, of those that are not torchrun's
};

// A command line cut into its two parts.
struct SplitArguments {
  // "--name" or "--name=value", names as in the table.
  std::vector<std::string> flags;
  // What is no flag, untouched.
  std::vector<std::string> words;
};

// What ends the flags, besides "--".
enum class FlagsEnd {
  kAtProgram,  // the words are a program and its arguments, perhaps with "--" between
  kAtCommand,  // the words are a command and what it reads itself
  kNowhere,    // flags may stand among the words
};

// Finds the flags and brings them into one form: both spellings of torchrun
// (--max-restarts, --max_restarts), values attached or not, letters in
// clusters. "-" and, with kNowhere, negative numbers are words. The first "--"
// is swallowed; with kAtProgram also one right after the program, as torchrun
// does. Pure.
// Errors: kInvalid for an unknown flag (with the nearest known name), an
// ambiguous one (with all that it may be), a missing value, or a value that a
// switch cannot take.
Result<SplitArguments> SplitFlags(const FlagTable& table, FlagsEnd end,
                                  std::span<const std::string> arguments);

}  // namespace rankrun::launcher

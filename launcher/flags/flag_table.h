#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankrun::launcher {

// The value that a flag takes.
enum class FlagValue {
  kNone,     // a switch
  kCount,    // a whole number from `least` to `most`
  kPort,     // 0 to 65535
  kSeconds,  // a number of seconds, at least 0, fractions allowed
  kSize,     // bytes: 512, 8K, 64M, 1G, 2T
  kText,     // any text that is not empty
  kChoice,   // one of `choices`
  kFile,     // the name of a file
  kFolder,   // the name of a folder
};

// Places besides the command line that may set a flag.
enum class FlagSources {
  kNowhere,
  kOurs,  // RANKRUN_<NAME>, and the file of --config
  kPet,   // those, and torchrun's PET_<NAME>
};

// One flag. The parser, --help, the man page, shell completion and the readers
// of variables and files all use this table. `default_value`, `help` and
// `details` are marked text (marked_text.h).
struct Flag {
  std::string_view name = {};  // "nproc-per-node"
  char letter = 0;             // 'n'; 0: none
  FlagValue value = FlagValue::kNone;
  int least = 0;                        // of a kCount
  int most = 0;                         // of a kCount; of a kSize in units of 1G, 0: no limit
  std::string_view choices = {};        // "spawn|fork": values; of a kChoice, all of them
  std::string_view value_name = {};     // "N"
  std::string_view default_value = {};  // empty: none
  std::string_view help = {};           // for --help; opens the entry in the man page
  std::string_view details = {};        // follows `help` in the man page
  std::string_view group = {};          // heading above the flag; empty: "Flags"
  bool from_torchrun = false;           // torchrun has this flag, with the same meaning
  FlagSources sources = FlagSources::kNowhere;
  std::string_view last_variable = {};  // read if no other source sets the flag; empty: none
  bool repeats = false;                 // every value counts, not only the last
  bool may_be_empty = false;            // an empty value is accepted
};

// The flags of one command.
struct FlagTable {
  std::string_view command;  // as its user calls it: "rankrun", "rankctl store get"
  std::span<const Flag> flags;
};

// Flags under one heading.
struct FlagGroup {
  std::string_view heading;
  std::vector<const Flag*> flags;  // in the order of the table
};

// Returns the groups of a table in the order of their first flags.
std::vector<FlagGroup> GroupsOf(const FlagTable& table);

inline constexpr std::string_view kOurPrefix = "RANKRUN_";
inline constexpr std::string_view kPetPrefix = "PET_";

// Returns the variable with this prefix that sets the flag, for example
// "PET_MAX_RESTARTS", or nothing if there is none.
std::optional<std::string> VariableNameOf(const Flag& flag, std::string_view prefix);

}  // namespace rankrun::launcher

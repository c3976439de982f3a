#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/flags/flag_table.h"

namespace rankrun::launcher {

// The flags of a command line with their values, which the parser has checked.
class ParsedFlags {
 public:
  using Values = std::map<std::string, std::vector<std::string>, std::less<>>;
  ParsedFlags() = default;
  explicit ParsedFlags(Values values) : values_(std::move(values)) {}

  bool Has(std::string_view name) const { return values_.contains(name); }

  // Returns all values of a flag in their order. The other functions return the
  // last value. Count(), Port(), Seconds() and Size() need a flag of that kind.
  std::vector<std::string> Texts(std::string_view name) const;
  std::optional<std::string> Text(std::string_view name) const;
  std::optional<int> Count(std::string_view name) const;
  std::optional<uint16_t> Port(std::string_view name) const;
  std::optional<std::chrono::milliseconds> Seconds(std::string_view name) const;
  std::optional<uint64_t> Size(std::string_view name) const;

 private:
  Values values_;
};

// A command line in its two parts.
struct Arguments {
  ParsedFlags flags;
  std::vector<std::string> positionals;  // unchanged
};

// The place, besides "--", where the flags end.
enum class FlagsEnd {
  kAtProgram,  // before the program; "--" may follow the program, too
  kAtCommand,  // before the command, which reads its own arguments
  kNowhere,    // flags may stand among the positionals
};

// Parses a command line and checks the values against the table. Accepts both
// spellings of torchrun (--max-restarts, --max_restarts), unique prefixes of
// the names of torchrun's flags, attached and separate values, and clustered
// letters. A separate value must not begin with "--". "-" is a positional; with
// kNowhere, a negative number is one, too. Drops the first "--", and with
// kAtProgram also a "--" right after the program, as torchrun does. Pure.
// Errors: kInvalid, one line that names the flag and the accepted values. An
// unknown flag is reported before a wrong value.
Result<Arguments> ParseArguments(const FlagTable& table, FlagsEnd end,
                                 std::span<const std::string> arguments);

// Returns the error message for a value ("want seconds, ..."), or an empty text
// if the value is valid. Checks no switches.
std::string WrongValue(const Flag& flag, const std::string& text);

std::vector<std::string_view> ChoicesOf(const Flag& flag);

// Returns "a, b or c".
std::string Listed(const std::vector<std::string_view>& names);

// Returns the bytes of a size: a whole number, then K, M, G or T for units of
// 1024, or no unit. Returns nothing for 0 and for other texts.
std::optional<uint64_t> ParseSize(std::string_view text);

}  // namespace rankrun::launcher

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

#include "launcher/flag_table.h"

namespace rankrun::launcher {

// The flags that a command line gave, with their values, which fit the table.
class ParsedFlags {
 public:
  using Values = std::map<std::string, std::vector<std::string>, std::less<>>;
  ParsedFlags() = default;
  explicit ParsedFlags(Values values) : values_(std::move(values)) {}

  bool Has(std::string_view name) const { return values_.contains(name); }

  // All values of a flag in their order, and the last one, which counts where
  // one is wanted. The calls after these are for flags of that kind of value.
  std::vector<std::string> Texts(std::string_view name) const;
  std::optional<std::string> Text(std::string_view name) const;
  std::optional<int> Count(std::string_view name) const;
  std::optional<uint16_t> Port(std::string_view name) const;
  std::optional<std::chrono::milliseconds> Seconds(std::string_view name) const;
  std::optional<uint64_t> Size(std::string_view name) const;

 private:
  Values values_;
};

// `flags` are those of SplitArguments.
// Errors: kInvalid, one line that names the flag and what would be right.
Result<ParsedFlags> ParseFlags(const FlagTable& table, const std::vector<std::string>& flags);

// What is wrong with a value ("want seconds, ..."), or nothing. `flag` is no
// switch.
std::string WrongValue(const Flag& flag, const std::string& text);

std::vector<std::string_view> ChoicesOf(const Flag& flag);

// "a, b or c"
std::string Listed(const std::vector<std::string_view>& names);

// Bytes: a whole number, then K, M, G or T for units of 1024. Nothing for what
// is none, and for 0.
std::optional<uint64_t> ParseSize(std::string_view text);

}  // namespace rankrun::launcher

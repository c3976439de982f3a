#include "launcher/flag_parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>

#include "launcher/nearest_name.h"
#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

std::string CheckSize(const Flag& flag, const std::string& text) {
  auto bytes = ParseSize(text);
  if (!bytes) return "want a size, as 512, 8K, 64M, 1G or 2T" + Got(text);
  if (flag.most == 0 || *bytes <= static_cast<uint64_t>(flag.most) << 30) return "";
  return "want at most " + std::to_string(flag.most) + "G" + Got(text);
}

// "want spawn, fork or forkserver, got ..."
std::string CheckChoice(const Flag& flag, const std::string& text) {
  std::vector<std::string_view> choices = ChoicesOf(flag);
  if (std::ranges::find(choices, text) != choices.end()) return "";
  std::string wrong = "want " + Listed(choices) + Got(text);
  auto nearest = NearestName(text, choices);
  return nearest ? wrong + "; did you mean " + std::string(*nearest) + "?" : wrong;
}

// CLI11's options, made from the table as far as they are given: the whole table
// would cost a start 0.2 ms. Values stay text until all are checked.
class Parser {
 public:
  explicit Parser(const FlagTable& table) : table_(table), app_("", std::string(table.command)) {
    app_.set_help_flag();  // ours is in the table
  }

  Result<ParsedFlags> Parse(const std::vector<std::string>& flags) {
    for (const Flag& flag : table_.flags) {
      std::string name = "--" + std::string(flag.name);
      auto is_it = [&](const std::string& given) {
        return given.substr(0, given.find('=')) == name;
      };
      if (std::ranges::any_of(flags, is_it)) Add(flag, name);
    }
    std::vector<std::string> stack;  // as CLI11 wants it
    for (const std::string& flag : flags) {
      size_t equals = flag.find('=');
      bool empty = equals + 1 == flag.size();  // CLI11 would take the next flag for the value
      stack.push_back(empty ? flag.substr(0, equals) : flag);
      if (empty) stack.emplace_back();
    }
    std::ranges::reverse(stack);
    try {
      app_.parse(std::move(stack));
    } catch (const CLI::Error& error) {
      return Error{ErrorCode::kInvalid, error.what()};
    }
    ParsedFlags::Values values;
    for (const auto& [flag, option] : options_) values.emplace(flag->name, option->results());
    return ParsedFlags(std::move(values));
  }

 private:
  void Add(const Flag& flag, const std::string& name) {
    bool is_switch = flag.value == FlagValue::kNone;
    CLI::Option* option = is_switch ? app_.add_flag(name) : app_.add_option(name);
    options_.emplace_back(&flag, option);
    if (is_switch) return;
    option->take_last();
    option->check([&flag](const std::string& text) { return WrongValue(flag, text); });
  }

  const FlagTable& table_;
  CLI::App app_;
  std::vector<std::pair<const Flag*, const CLI::Option*>> options_;
};

// 1 for "", 1024 for "K", 0 for what is no unit.
uint64_t BytesOfUnit(std::string_view unit) {
  constexpr std::string_view kUnits = "KMGT";
  if (unit.empty()) return 1;
  size_t power = unit.size() == 1 ? kUnits.find(unit[0]) : kUnits.npos;
  return power == kUnits.npos ? 0 : uint64_t{1024} << (10 * power);
}

}  // namespace

std::vector<std::string_view> ChoicesOf(const Flag& flag) {
  std::vector<std::string_view> choices;
  std::string_view left = flag.choices;
  while (!left.empty()) {
    size_t end = std::min(left.find('|'), left.size());
    choices.push_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return choices;
}

std::string Listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string WrongValue(const Flag& flag, const std::string& text) {
  std::string got = Got(text);
  switch (flag.value) {
    case FlagValue::kCount: {
      auto number = ParseNumber<int>(text);
      if (number && *number >= flag.least && *number <= flag.most) return "";
      return "want a whole number from " + std::to_string(flag.least) + " to " +
             std::to_string(flag.most) + got;
    }
    case FlagValue::kPort:
      return ParseNumber<uint16_t>(text) ? "" : "want a port number from 0 to 65535" + got;
    case FlagValue::kSeconds: {
      auto number = ParseNumber<double>(text);
      constexpr double kYear = 365.0 * 24 * 3600;
      if (number && *number >= 0 && *number <= kYear) return "";
      return "want seconds, from 0 to a year" + got;
    }
    case FlagValue::kSize:
      return CheckSize(flag, text);
    case FlagValue::kChoice:
      return CheckChoice(flag, text);
    case FlagValue::kText:
    case FlagValue::kFile:
    case FlagValue::kFolder:
      return text.empty() ? "want a value that is not empty" : "";
    case FlagValue::kAnyText:
    case FlagValue::kNone:
      return "";
  }
  __builtin_unreachable();
}

std::vector<std::string> ParsedFlags::Texts(std::string_view name) const {
  auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::string> ParsedFlags::Text(std::string_view name) const {
  auto found = values_.find(name);
  if (found == values_.end()) return std::nullopt;
  return found->second.back();
}

std::optional<int> ParsedFlags::Count(std::string_view name) const {
  auto text = Text(name);
  return text ? ParseNumber<int>(*text) : std::nullopt;
}

std::optional<uint16_t> ParsedFlags::Port(std::string_view name) const {
  auto text = Text(name);
  return text ? ParseNumber<uint16_t>(*text) : std::nullopt;
}

std::optional<std::chrono::milliseconds> ParsedFlags::Seconds(std::string_view name) const {
  auto text = Text(name);
  auto number = text ? ParseNumber<double>(*text) : std::nullopt;
  if (!number) return std::nullopt;
  auto nearest = std::chrono::milliseconds(std::llround(*number * 1000));
  bool lost = *number > 0 && nearest.count() == 0;  // 0 may mean never
  return lost ? std::chrono::milliseconds(1) : nearest;
}

std::optional<uint64_t> ParsedFlags::Size(std::string_view name) const {
  auto text = Text(name);
  return text ? ParseSize(*text) : std::nullopt;
}

Result<ParsedFlags> ParseFlags(const FlagTable& table, const std::vector<std::string>& flags) {
  return Parser(table).Parse(flags);
}

std::optional<uint64_t> ParseSize(std::string_view text) {
  size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto number = ParseNumber<uint64_t>(text.substr(0, digits));
  uint64_t unit = BytesOfUnit(text.substr(digits));
  if (!number || *number == 0 || unit == 0) return std::nullopt;
  if (*number > std::numeric_limits<uint64_t>::max() / unit) return std::nullopt;
  return *number * unit;
}

}  // namespace rankrun::launcher

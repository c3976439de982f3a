#include "launcher/flags/flag_parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/parse_number.h"
#include "launcher/flags/nearest_name.h"
#include "launcher/flags/text.h"

namespace rankrun::launcher {
namespace {

std::string CheckSize(const Flag& flag, const std::string& text) {
  auto bytes = ParseSize(text);
  if (!bytes) return "want a size, as 512, 8K, 64M, 1G or 2T" + Got(text);
  if (flag.most == 0 || *bytes <= static_cast<uint64_t>(flag.most) << 30) return "";
  return "want at most " + std::to_string(flag.most) + "G" + Got(text);
}

// Returns "want spawn, fork or forkserver, got ...", or an empty text.
std::string CheckChoice(const Flag& flag, const std::string& text) {
  std::vector<std::string_view> choices = ChoicesOf(flag);
  if (std::ranges::find(choices, text) != choices.end()) return "";
  std::string wrong = "want " + Listed(choices) + Got(text);
  auto nearest = NearestName(text, choices);
  return nearest ? wrong + "; did you mean " + std::string(*nearest) + "?" : wrong;
}

// Marks the start of an attached value ("--name=value"), because CLI11 does not
// distinguish it from a separate one. No argument of a process contains this
// character.
constexpr char kAttached = '\0';

std::string Spelled(const Flag& flag) { return "--" + std::string(flag.name); }

Error NeedsValue(const Flag& flag) {
  return {ErrorCode::kInvalid,
          Spelled(flag) + " needs a value (" + std::string(flag.value_name) + ")"};
}

// Returns "max-restarts" for "--max_restarts=3".
std::string NameIn(std::string_view argument) {
  std::string name(argument.substr(2, argument.find('=') - 2));
  std::ranges::replace(name, '_', '-');
  return name;
}

// Accepts a value only if a variable or a file can turn the switch on, so that
// the command line can turn it off ("--name=0").
Result<std::string> ReadSwitch(const Flag& flag, const std::string& text) {
  if (flag.sources == FlagSources::kNowhere) {
    return Error{ErrorCode::kInvalid, Spelled(flag) + " takes no value" + Got(text)};
  }
  auto value = SwitchText(text);
  if (!value) return Error{ErrorCode::kInvalid, Spelled(flag) + ": " + WrongSwitch(text)};
  return *value;
}

// Checks a value that CLI11 has returned.
Result<std::string> ReadValue(const Flag& flag, std::string text) {
  bool is_switch = flag.value == FlagValue::kNone;
  bool attached = text.starts_with(kAttached);
  if (is_switch && !attached) return text;
  bool of_letter = flag.letter != 0 && text.starts_with('=');  // "-n=4"
  if (attached || of_letter) text.erase(0, 1);
  if (is_switch) return ReadSwitch(flag, text);
  bool is_empty = text.empty() && !flag.may_be_empty;
  if (is_empty || (!attached && text.starts_with("--"))) return NeedsValue(flag);
  std::string wrong = WrongValue(flag, text);
  if (!wrong.empty()) return Error{ErrorCode::kInvalid, Spelled(flag) + ": " + wrong};
  return text;
}

// Parser of one command line. CLI11 2.1 separates flags, values, letters and
// positionals, but compares names exactly and accepts any argument as a
// separate value. So this class rewrites the arguments before CLI11 parses
// them: it completes prefixes of names, replaces "_" by "-", and marks attached
// values, which may be empty or begin with "--".
class Parser {
 public:
  Parser(const FlagTable& table, FlagsEnd end, std::span<const std::string> arguments)
      : table_(table), end_(end), arguments_(arguments), app_("", std::string(table.command)) {
    app_.set_help_flag();  // removes CLI11's own --help; the table has one
    app_.allow_extras(end == FlagsEnd::kNowhere);
    app_.prefix_command(end != FlagsEnd::kNowhere);
  }

  Result<Arguments> Parse() {
    std::vector<std::string> stack = Respelled();
    std::ranges::reverse(stack);  // CLI11 reads its vector from the back
    try {
      app_.parse(std::move(stack));
    } catch (const CLI::ArgumentMismatch& error) {  // the last flag has no value
      std::string_view text = error.what();         // "--name: ..."
      return NeedsValue(*ByName(text.substr(2, text.find(':') - 2)));
    } catch (const CLI::Error& error) {
      return Error{ErrorCode::kInvalid, error.what()};
    }
    auto positionals = Positionals();
    if (!positionals) return std::move(positionals).error();
    auto flags = Values();
    if (!flags) return std::move(flags).error();
    return Arguments{std::move(*flags), std::move(*positionals)};
  }

 private:
  const Flag* ByName(std::string_view name) const {
    auto found = std::ranges::find(table_.flags, name, &Flag::name);
    return found == table_.flags.end() ? nullptr : &*found;
  }

  // Returns the flag of that name. If there is none, returns all flags of
  // torchrun whose names begin with it.
  std::vector<const Flag*> Candidates(std::string_view name) const {
    if (const Flag* flag = ByName(name)) return {flag};
    std::vector<const Flag*> candidates;
    for (const Flag& flag : table_.flags) {
      bool begins = !name.empty() && flag.from_torchrun && flag.name.starts_with(name);
      if (begins) candidates.push_back(&flag);
    }
    return candidates;
  }

  // Registers a flag with CLI11 when it first occurs, because registering all
  // flags would add 0.2 ms to each start.
  void Add(const Flag& flag) {
    auto is_it = [&](const auto& entry) { return entry.first == &flag; };
    if (std::ranges::any_of(options_, is_it)) return;
    std::string names = Spelled(flag);
    if (flag.letter != 0) names += std::string(",-") + flag.letter;
    bool is_switch = flag.value == FlagValue::kNone;
    CLI::Option* option = is_switch ? app_.add_flag(names) : app_.add_option(names);
    option->take_last();
    options_.emplace_back(&flag, option);
  }

  // Returns the arguments with names as in the table and marked attached
  // values. Does not change unknown and ambiguous names, so that CLI11 reports
  // them as remaining arguments.
  std::vector<std::string> Respelled() {
    std::vector<std::string> result(arguments_.begin(), arguments_.end());
    for (std::string& argument : result) {
      if (argument.starts_with("--")) {
        Respell(argument);
      } else if (argument.starts_with('-')) {
        AddLetters(argument);
      }
    }
    return result;
  }

  void Respell(std::string& argument) {
    auto candidates = Candidates(NameIn(argument));  // none for "--"
    if (candidates.size() != 1) return;
    Add(*candidates[0]);
    size_t equals = std::min(argument.find('='), argument.size());
    if (equals < argument.size()) argument.insert(equals + 1, 1, kAttached);
    argument.replace(0, equals, Spelled(*candidates[0]));
  }

  void AddLetters(std::string_view cluster) {
    for (const Flag& flag : table_.flags) {
      if (flag.letter != 0 && cluster.find(flag.letter) != cluster.npos) Add(flag);
    }
  }

  bool IsFlag(std::string_view argument) const {
    if (argument.size() < 2 || argument[0] != '-') return false;
    bool is_number = argument[1] >= '0' && argument[1] <= '9';
    return end_ != FlagsEnd::kNowhere || !is_number;
  }

  // Returns the positionals. The remaining arguments of CLI11 also include
  // unknown flags and "--".
  Result<std::vector<std::string>> Positionals() const {
    std::vector<std::string> left = app_.remaining();
    bool among_positionals = end_ == FlagsEnd::kNowhere;
    auto rest = left.begin();  // CLI11 has parsed no argument from here on
    while (rest != left.end() && *rest != "--" && (rest == left.begin() || among_positionals)) {
      if (IsFlag(*rest)) return UnknownFlag(*rest);
      ++rest;
    }
    auto originals = arguments_.end() - (left.end() - rest);
    bool from_cluster = rest != left.end() && *rest == "--" && *originals != "--";  // "-m-"
    if (from_cluster) return UnknownLetter(*rest);
    std::copy(originals, arguments_.end(), rest);  // because Respelled() may have changed them
    bool may_drop = rest == left.begin() || end_ != FlagsEnd::kAtCommand;
    if (may_drop && rest != left.end() && *rest == "--") left.erase(rest);
    return left;
  }

  Error UnknownFlag(const std::string& argument) const {
    if (!argument.starts_with("--")) return UnknownLetter(argument);
    std::string name = NameIn(argument);
    auto candidates = Candidates(name);
    if (!candidates.empty()) return Ambiguous(name, candidates);
    std::vector<std::string_view> names;
    for (const Flag& flag : table_.flags) names.push_back(flag.name);
    auto nearest = NearestName(name, names);
    return {ErrorCode::kInvalid,
            "unknown flag --" + name + "; " +
                (nearest ? "did you mean --" + std::string(*nearest) + "?" : WhereAllAre())};
  }

  // `letters` is "-" and the rest of a cluster, from its first unknown letter.
  Error UnknownLetter(const std::string& letters) const {
    auto has_them = [&](std::string_view text) {
      return text.starts_with('-') && !text.starts_with("--") && text.ends_with(letters.substr(1));
    };
    return {ErrorCode::kInvalid, std::string("unknown flag -") + letters[1] + " in \"" +
                                     *std::ranges::find_if(arguments_, has_them) + "\"; " +
                                     WhereAllAre()};
  }

  static Error Ambiguous(const std::string& name, const std::vector<const Flag*>& candidates) {
    std::vector<std::string> spelled;
    for (const Flag* flag : candidates) spelled.push_back(Spelled(*flag));
    return {ErrorCode::kInvalid,
            "--" + name + " is ambiguous: " + Listed({spelled.begin(), spelled.end()})};
  }

  std::string WhereAllAre() const { return std::string(table_.command) + " --help lists all"; }

  Result<ParsedFlags> Values() const {
    ParsedFlags::Values values;
    for (const auto& [flag, option] : options_) {
      for (const std::string& text : option->results()) {
        auto value = ReadValue(*flag, text);
        if (!value) return std::move(value).error();
        values[std::string(flag->name)].push_back(std::move(*value));
      }
    }
    return ParsedFlags(std::move(values));
  }

  const FlagTable& table_;
  const FlagsEnd end_;
  const std::span<const std::string> arguments_;
  CLI::App app_;
  std::vector<std::pair<const Flag*, const CLI::Option*>> options_;
};

// Returns 1 for "", 1024 for "K" and so on, and 0 for other texts.
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
      return text.empty() && !flag.may_be_empty ? "want a value that is not empty" : "";
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
  bool lost = *number > 0 && nearest.count() == 0;  // 0 may mean "no limit"
  return lost ? std::chrono::milliseconds(1) : nearest;
}

std::optional<uint64_t> ParsedFlags::Size(std::string_view name) const {
  auto text = Text(name);
  return text ? ParseSize(*text) : std::nullopt;
}

Result<Arguments> ParseArguments(const FlagTable& table, FlagsEnd end,
                                 std::span<const std::string> arguments) {
  return Parser(table, end, arguments).Parse();
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

#include "launcher/command_line.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>

#include "launcher/flags.h"

namespace rankrun::launcher {
namespace {

template <typename Number>
std::optional<Number> ParseNumber(const std::string& text) {
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// What is wrong with a value, or nothing.
std::string CheckValue(const Flag& flag, const std::string& text) {
  std::string got = ", got \"" + text + "\"";
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
    case FlagValue::kText:
      return text.empty() ? "want a value that is not empty" : "";
    case FlagValue::kNone:
      return "";
  }
  __builtin_unreachable();
}

std::string HelpOf(const Flag& flag) {
  std::string help(flag.help);
  if (!flag.default_value.empty()) help += " Default: " + std::string(flag.default_value) + ".";
  return help;
}

class HelpFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "\nUsage: rankrun [flags] program [arguments]\n";
  }
};

// CLI11's options, made from the table; values stay text until all are checked.
class Parser {
 public:
  Parser() {
    app_.set_help_flag();  // ours is in the table
    app_.formatter(std::make_shared<HelpFormatter>());
    for (const Flag& flag : Flags()) Add(flag);
  }

  Result<void> Parse(const std::vector<std::string>& flags) {
    try {
      app_.parse(std::vector<std::string>(flags.rbegin(), flags.rend()));  // CLI11 wants a stack
    } catch (const CLI::Error& error) {
      return Error{ErrorCode::kInvalid, error.what()};
    }
    return {};
  }

  bool Has(const std::string& name) const { return app_.get_option("--" + name)->count() > 0; }

  std::optional<std::string> Text(const std::string& name) const {
    if (!Has(name)) return std::nullopt;
    return app_.get_option("--" + name)->results().back();
  }

  template <typename Number>
  std::optional<Number> Get(const std::string& name) const {
    auto text = Text(name);
    return text ? ParseNumber<Number>(*text) : std::nullopt;
  }

  std::string Help() const { return app_.help(); }

 private:
  void Add(const Flag& flag) {
    std::string names = "--" + std::string(flag.name);
    if (flag.letter != 0) names = std::string("-") + flag.letter + "," + names;
    bool is_switch = flag.value == FlagValue::kNone;
    CLI::Option* option = is_switch ? app_.add_flag(names) : app_.add_option(names);
    option->description(HelpOf(flag));
    option->group(flag.from_torchrun ? "Flags as torchrun's" : "Flags of rankrun's own");
    if (is_switch) return;
    option->type_name(std::string(flag.value_name))->take_last();
    option->check([&flag](const std::string& text) { return CheckValue(flag, text); });
  }

  CLI::App app_{
      "Starts one worker per slot, hosts the store in which they meet, watches them and\n"
      "restarts them when one fails.",
      "rankrun"};
};

Result<void> CheckTogether(const Options& options) {
  if (options.help || options.version) return {};
  if (options.program.empty() || options.program[0].empty()) {
    return Error{ErrorCode::kInvalid,
                 "no program given; usage: rankrun [flags] program [arguments]"};
  }
  if (options.module && options.no_python) {
    return Error{ErrorCode::kInvalid, "--module and --no-python exclude each other"};
  }
  return {};
}

}  // namespace

Result<Options> ParseCommandLine(std::span<const std::string> arguments) {
  auto split = SplitCommandLine(arguments);
  if (!split) return std::move(split).error();
  Parser parser;
  if (auto parsed = parser.Parse(split->flags); !parsed) return std::move(parsed).error();
  Options options;
  options.workers = parser.Get<int>("nproc-per-node").value_or(options.workers);
  options.max_restarts = parser.Get<int>("max-restarts").value_or(options.max_restarts);
  if (auto seconds = parser.Get<double>("shutdown-timeout")) {
    options.shutdown_timeout = std::chrono::milliseconds(std::llround(*seconds * 1000));
  }
  options.master_addr = parser.Text("master-addr");
  options.master_port = parser.Get<uint16_t>("master-port");
  options.no_python = parser.Has("no-python");
  options.module = parser.Has("module");
  options.help = parser.Has("help");
  options.version = parser.Has("version");
  options.program = std::move(split->program);
  if (auto checked = CheckTogether(options); !checked) return std::move(checked).error();
  return options;
}

std::string HelpText() { return Parser().Help(); }

}  // namespace rankrun::launcher

#include "launcher/settings/settings.h"

#include <algorithm>

#include "base/lowercase.h"
#include "launcher/flags/nearest_name.h"
#include "launcher/flags/text.h"
#include "launcher/settings/service_link.h"

namespace rankrun::launcher {
namespace {

// Returns whether RANKRUN_<name> is a variable that other parts read or set.
bool IsReadByOthers(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "STATUS_FD",  "STATUS_PATH", "KEEP",           "SAVE_FIFO",  "PLUGIN_DIR",
      "EXECUTABLE", "RANDOM_RUNS", "STORE",          "SOCKET_DIR", "LIBRARY",
      "SECRET",     "DEBUGGER",    "BREAKPOINT_PIPE"};
  return name == "LOG" || std::ranges::find(kNames, name) != std::end(kNames);
}

Result<Setting> ReadVariable(const Flag& flag, const std::string& name, const std::string& text) {
  if (flag.value == FlagValue::kNone) {
    auto value = SwitchText(text);
    if (value) return Setting{{*value}, name};
    return Error{ErrorCode::kInvalid, name + ": " + WrongSwitch(text)};
  }
  std::string wrong = WrongValue(flag, text);
  if (!wrong.empty()) return Error{ErrorCode::kInvalid, name + ": " + wrong};
  return Setting{{text}, name};
}

const Flag* Find(const FlagTable& table, std::string_view name) {
  auto found = std::ranges::find(table.flags, name, &Flag::name);
  return found == table.flags.end() ? nullptr : &*found;
}

// Returns an empty text if the variable is read or resembles no flag.
std::string WhyUnread(const FlagTable& table, const std::string& variable) {
  std::string typed = variable.substr(kOurPrefix.size());
  typed = Lowercase(std::move(typed));
  std::ranges::replace(typed, '_', '-');
  std::vector<std::string_view> names;
  for (const Flag& flag : table.flags) {
    auto known = VariableNameOf(flag, kOurPrefix);
    if (known == variable) return "";
    if (flag.name == typed) return "--" + typed + " has no variable";
    if (known) names.push_back(flag.name);
  }
  auto nearest = NearestName(typed, names);
  if (!nearest) return "";
  return "did you mean " + *VariableNameOf(*Find(table, *nearest), kOurPrefix) + "?";
}

}  // namespace

Settings::Settings(const FlagTable& table, std::span<const SettingsSource> sources) {
  for (const SettingsSource& source : sources) {
    for (const auto& [name, setting] : source) {
      auto [stronger, added] = source_.emplace(name, setting);
      if (added) continue;
      const Flag* flag = Find(table, name);
      if (flag != nullptr && flag->repeats) {
        auto& values = stronger->second.values;
        values.insert(values.begin(), setting.values.begin(), setting.values.end());
        stronger->second.origin = setting.origin + ", " + stronger->second.origin;
      } else {
        overridden_.push_back({setting, stronger->second.origin});
      }
    }
  }
  ParsedFlags::Values values;
  for (const auto& [name, setting] : source_) values.emplace(name, setting.values);
  values_ = ParsedFlags(std::move(values));
}

std::optional<std::string> Settings::NonEmptyText(std::string_view name) const {
  auto text = Text(name);
  return text && text->empty() ? std::nullopt : text;
}

std::string Settings::OriginOf(std::string_view name) const {
  auto found = source_.find(name);
  return found == source_.end() ? "--" + std::string(name) : found->second.origin;
}

Error Settings::Wrong(std::string_view name, const std::string& what) const {
  return {ErrorCode::kInvalid, OriginOf(name) + ": " + what};
}

Error Settings::AtOrigin(Error error) const {
  for (const auto& [name, setting] : source_) {
    std::string flag = "--" + name;
    if (!error.message.starts_with(flag + " ")) continue;
    error.message.replace(0, flag.size(), setting.origin);
    break;
  }
  return error;
}

std::string ShownValue(const Setting& setting) {
  std::string text;
  for (const std::string& value : setting.values) text += (text.empty() ? "" : " ") + value;
  return text;
}

SettingsSource SettingsOfFlags(const FlagTable& table, const ParsedFlags& flags) {
  SettingsSource source;
  for (const Flag& flag : table.flags) {
    if (!flags.Has(flag.name)) continue;
    bool is_switch = flag.value == FlagValue::kNone;
    std::vector<std::string> values = flags.Texts(flag.name);
    if (!flag.repeats) values = {values.back()};
    if (is_switch && values.back().empty()) values = {"true"};
    source.emplace(flag.name, Setting{std::move(values), "--" + std::string(flag.name)});
  }
  return source;
}

std::vector<std::string> UnreadVariables(const FlagTable& table,
                                         const std::vector<std::string>& variables) {
  std::vector<std::string> sentences;
  for (const std::string& entry : variables) {
    size_t equals = std::min(entry.find('='), entry.size());
    std::string name = entry.substr(0, equals);
    if (!name.starts_with(kOurPrefix) || IsReadByOthers(name.substr(kOurPrefix.size()))) continue;
    if (equals < entry.size() && IsServiceLink(name, entry.substr(equals + 1))) continue;
    std::string why = WhyUnread(table, name);
    if (!why.empty()) sentences.push_back(name + " is not read: " + why);
  }
  return sentences;
}

Result<SettingsSource> SettingsOfVariables(const FlagTable& table, std::string_view prefix,
                                           const Environment& environment) {
  SettingsSource source;
  for (const Flag& flag : table.flags) {
    auto variable = VariableNameOf(flag, prefix);
    if (!variable) continue;
    std::string name = std::move(*variable);
    auto text = environment(name);
    if (!text && prefix == kPetPrefix && !flag.last_variable.empty()) {
      name = flag.last_variable;
      text = environment(name);
    }
    if (!text || IsServiceLink(name, *text)) continue;
    auto setting = ReadVariable(flag, name, *text);
    if (!setting) return std::move(setting).error();
    source.emplace(flag.name, std::move(*setting));
  }
  return source;
}

}  // namespace rankrun::launcher

#include "launcher/settings.h"

#include <algorithm>

#include "launcher/nearest_name.h"
#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

constexpr std::string_view kPetPrefix = "PET_";
constexpr std::string_view kOurPrefix = "RANKRUN_";

// What stands behind it in variables that other parts read or set.
bool IsReadByOthers(std::string_view name) {
  constexpr std::string_view kNames[] = {"STATUS_FD",   "STATUS_PATH", "KEEP",
                                         "SAVE_FIFO",   "PLUGIN_DIR",  "EXECUTABLE",
                                         "RANDOM_RUNS", "STORE",       "SECRET"};
  return name == "LOG" || std::ranges::find(kNames, name) != std::end(kNames);
}

bool MayStandIn(const Flag& flag, std::string_view prefix) {
  if (prefix == kPetPrefix) return flag.elsewhere == Elsewhere::kPet;
  return flag.elsewhere != Elsewhere::kNowhere;
}

// "max-restarts" -> "PET_MAX_RESTARTS"
std::string VariableOf(const Flag& flag, std::string_view prefix) {
  std::string name(prefix);
  for (char c : flag.name) {
    name += c == '-' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
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

// Empty: it is read, or has nothing to do with a flag.
std::string WhyUnread(const FlagTable& table, const std::string& variable) {
  std::string typed = variable.substr(kOurPrefix.size());
  for (char& c : typed) c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  std::vector<std::string_view> names;
  for (const Flag& flag : table.flags) {
    bool may_stand = MayStandIn(flag, kOurPrefix);
    if (may_stand && VariableOf(flag, kOurPrefix) == variable) return "";
    if (flag.name == typed) return "--" + typed + " has no variable";
    if (may_stand) names.push_back(flag.name);
  }
  auto nearest = NearestName(typed, names);
  if (!nearest) return "";
  return "did you mean " + VariableOf(*Find(table, *nearest), kOurPrefix) + "?";
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
    std::string name = entry.substr(0, entry.find('='));
    if (!name.starts_with(kOurPrefix) || IsReadByOthers(name.substr(kOurPrefix.size()))) continue;
    std::string why = WhyUnread(table, name);
    if (!why.empty()) sentences.push_back(name + " is not read: " + why);
  }
  return sentences;
}

Result<SettingsSource> SettingsOfVariables(const FlagTable& table, std::string_view prefix,
                                           const Environment& environment) {
  SettingsSource source;
  for (const Flag& flag : table.flags) {
    if (!MayStandIn(flag, prefix)) continue;
    std::string name = VariableOf(flag, prefix);
    auto text = environment(name);
    if (!text && prefix == kPetPrefix && !flag.last_variable.empty()) {
      name = flag.last_variable;
      text = environment(name);
    }
    if (!text) continue;
    auto setting = ReadVariable(flag, name, *text);
    if (!setting) return std::move(setting).error();
    source.emplace(flag.name, std::move(*setting));
  }
  return source;
}

}  // namespace rankrun::launcher

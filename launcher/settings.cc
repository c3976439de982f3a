#include "launcher/settings.h"

#include <algorithm>

#include "launcher/text.h"

namespace rankrun::launcher {
namespace {

constexpr std::string_view kPetPrefix = "PET_";

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

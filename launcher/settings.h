#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/environment.h"
#include "launcher/flag_parser.h"

namespace rankrun::launcher {

// What one source gave for a flag of the table.
struct Setting {
  std::vector<std::string> values;  // of a switch: "true" or "false"
  std::string origin;               // "--tee", "PET_TEE", "tee in job.json"

  bool operator==(const Setting&) const = default;
};

// By the flag's name.
using SettingsSource = std::map<std::string, Setting, std::less<>>;

// A setting that a stronger source replaced.
struct Overridden {
  Setting setting;
  std::string by;  // the origin of the stronger one
};

// What counts of several sources. A value; all texts fit the table.
class Settings {
 public:
  Settings() = default;

  // `sources` from the strongest to the weakest. Of a flag that repeats all
  // values count, those of the strongest last.
  Settings(const FlagTable& table, std::span<const SettingsSource> sources);

  bool Has(std::string_view name) const { return source_.contains(name); }
  bool IsOn(std::string_view name) const { return Text(name) == "true"; }  // a switch
  std::optional<std::string> Text(std::string_view name) const { return values_.Text(name); }
  const ParsedFlags& values() const { return values_; }

  // "--tee", "PET_TEE"; of what is not set: the flag.
  std::string OriginOf(std::string_view name) const;

  // "PET_TEE: <what>"
  Error Wrong(std::string_view name, const std::string& what) const;

  // `error`, which begins with a flag, as one of where its value came from.
  Error AtOrigin(Error error) const;

  const SettingsSource& all() const { return source_; }
  const std::vector<Overridden>& overridden() const { return overridden_; }

 private:
  SettingsSource source_;
  ParsedFlags values_;
  std::vector<Overridden> overridden_;
};

// The value of a setting as given: "3", "a b" for several.
std::string ShownValue(const Setting& setting);

SettingsSource SettingsOfFlags(const FlagTable& table, const ParsedFlags& flags);

// A sentence for each variable of `variables` ("NAME=value") that looks as if
// rankrun would read it, and is not read: RANKRUN_ and nearly a flag's name, or
// that of a flag that has no variable.
std::vector<std::string> UnreadVariables(const FlagTable& table,
                                         const std::vector<std::string>& variables);

// Variables named `prefix` ("RANKRUN_", "PET_") and a flag's name. With PET_
// also each flag's last variable where there is no other.
// Errors: kInvalid, one line that names the variable and what would be right.
Result<SettingsSource> SettingsOfVariables(const FlagTable& table, std::string_view prefix,
                                           const Environment& environment);

}  // namespace rankrun::launcher

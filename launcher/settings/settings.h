#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/flags/flag_parser.h"
#include "launcher/settings/environment.h"

namespace rankrun::launcher {

// Values of one flag from one source.
struct Setting {
  std::vector<std::string> values;  // for a switch: "true" or "false"
  std::string origin;               // "--tee", "PET_TEE", "\"tee\" in job.json"

  bool operator==(const Setting&) const = default;
};

// Settings of one source by the names of flags.
using SettingsSource = std::map<std::string, Setting, std::less<>>;

// A setting that a stronger source overrides.
struct Overridden {
  Setting setting;
  std::string by;  // origin of the stronger setting
};

// Effective settings of several sources. All texts fit the table. A value.
class Settings {
 public:
  Settings() = default;

  // `sources` are in order from the strongest to the weakest. A flag that
  // repeats has the values of all sources, those of the strongest source last.
  Settings(const FlagTable& table, std::span<const SettingsSource> sources);

  bool Has(std::string_view name) const { return source_.contains(name); }
  bool IsOn(std::string_view name) const { return Text(name) == "true"; }  // a switch
  std::optional<std::string> Text(std::string_view name) const { return values_.Text(name); }
  // As Text, but an empty text counts as unset.
  std::optional<std::string> NonEmptyText(std::string_view name) const;
  const ParsedFlags& values() const { return values_; }

  // Returns "--tee" or "PET_TEE"; for an unset flag, the flag.
  std::string OriginOf(std::string_view name) const;

  // Returns the error "PET_TEE: <what>".
  Error Wrong(std::string_view name, const std::string& what) const;

  // Replaces the flag at the start of `error` by the origin of its value.
  Error AtOrigin(Error error) const;

  const SettingsSource& all() const { return source_; }
  const std::vector<Overridden>& overridden() const { return overridden_; }

 private:
  SettingsSource source_;
  ParsedFlags values_;
  std::vector<Overridden> overridden_;
};

// Returns the value as given, "3", or several values as "a b".
std::string ShownValue(const Setting& setting);

// Returns the settings of the command line.
SettingsSource SettingsOfFlags(const FlagTable& table, const ParsedFlags& flags);

// Returns a sentence for each entry of `variables` ("NAME=value") that rankrun
// seems to read but does not: its name is RANKRUN_ and nearly the name of a
// flag, or the name of a flag that has no variable. Skips those of Services.
std::vector<std::string> UnreadVariables(const FlagTable& table,
                                         const std::vector<std::string>& variables);

// Returns the settings of variables whose names are `prefix` ("RANKRUN_",
// "PET_") and the name of a flag. With PET_, a flag without one takes its last
// variable. Skips the variables that Kubernetes sets for Services.
// Errors: kInvalid, one line that names the variable and the accepted values.
Result<SettingsSource> SettingsOfVariables(const FlagTable& table, std::string_view prefix,
                                           const Environment& environment);

}  // namespace rankrun::launcher

#pragma once

#include <string>
#include <vector>

#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Content of the file of --config.
struct ConfigFile {
  SettingsSource settings;
  std::vector<std::string> program;  // with its arguments; empty: not in the file
};

// Parses the text of a file: a JSON object whose keys are the names of flags,
// in both spellings. "env" is an object of variables, or an array of values of
// --env. "program" is an array or a text. `path` is for messages. Pure.
// Errors: kInvalid, one line that names the file, the key and the accepted
// values.
Result<ConfigFile> ReadConfig(const FlagTable& table, const std::string& text,
                              const std::string& path);

}  // namespace rankrun::launcher

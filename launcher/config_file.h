#pragma once

#include <string>
#include <vector>

#include "launcher/settings.h"

namespace rankrun::launcher {

// What the file of --config says.
struct ConfigFile {
  SettingsSource settings;
  std::vector<std::string> program;  // and its arguments; empty: not there
};

// Reads the text of a file: a JSON object of settings by the names of flags, in
// both spellings; "env" is an object of variables, or an array as of --env;
// "program" is an array or a text. `path` is for messages. Pure.
// Errors: kInvalid, one line that names the file, the key and what would be
// right.
Result<ConfigFile> ReadConfig(const FlagTable& table, const std::string& text,
                              const std::string& path);

}  // namespace rankrun::launcher

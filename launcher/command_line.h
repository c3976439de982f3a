#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/scheduler.h"
#include "launcher/settings.h"

namespace rankrun::launcher {

// What the arguments alone say.
struct Arguments {
  ParsedFlags flags;
  std::vector<std::string> words;  // the program and its arguments
};

// `command` is the name that rankrun was started by.
// Errors: kInvalid, one line that names the flag and what would be right.
Result<Arguments> ReadArguments(std::string_view command, std::span<const std::string> arguments);

// What arguments, variables, the file of --config and the scheduler say together.
struct CommandLine {
  Settings settings;
  std::vector<std::string> words;
  std::string words_origin;  // empty: the arguments
};

// Where settings are looked for besides the arguments.
struct Sources {
  Environment environment;
  std::function<Result<std::string>(const std::string& path)> read_file;
  std::function<Result<void>(const std::string& path)> change_folder;  // for --chdir
  Scheduler scheduler = {};
};

// Flags win over RANKRUN_* over PET_* variables over the file over the
// scheduler. The folder is changed before the file is read, unless it is the
// file that says so.
// Errors: kInvalid, one line that names the flag, variable or file.
Result<CommandLine> CollectSettings(std::string_view command, Arguments arguments,
                                    const Sources& sources);

// The text of --help.
std::string HelpText(std::string_view command);

}  // namespace rankrun::launcher

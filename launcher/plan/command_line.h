#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/scheduler/scheduler.h"
#include "launcher/settings/settings.h"

namespace rankrun::launcher {

// Parses the arguments of rankrun; the positionals are the program and its
// arguments. `command` is the name by which rankrun was started.
// Errors: as ParseArguments.
Result<Arguments> ReadArguments(std::string_view command, std::span<const std::string> arguments);

// The settings of all sources together, and the program.
struct CommandLine {
  Settings settings;
  std::vector<std::string> program;  // with its arguments
  std::string program_origin;        // empty: the arguments
};

// Sources of settings besides the arguments.
struct Sources {
  Environment environment;
  std::function<Result<std::string>(const std::string& path)> read_file;
  std::function<Result<void>(const std::string& path)> change_folder;  // for --chdir
  Scheduler scheduler = {};
};

// Flags take precedence over RANKRUN_* variables, then PET_* variables, the
// file and the scheduler. Changes the folder before it reads the file, unless
// only the file has --chdir.
// Errors: kInvalid, one line that names the flag, variable or file.
Result<CommandLine> CollectSettings(std::string_view command, Arguments arguments,
                                    const Sources& sources);

// Returns the text of --help.
std::string HelpText(std::string_view command);

}  // namespace rankrun::launcher

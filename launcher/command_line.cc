#include "launcher/command_line.h"

#include "launcher/config_file.h"
#include "launcher/flags.h"
#include "launcher/help.h"

namespace rankrun::launcher {
namespace {

class Collector {
 public:
  Collector(std::string_view command, const Sources& sources)
      : table_(RankrunFlags(command)), sources_(sources) {}

  Result<CommandLine> Collect(Arguments arguments) {
    found_.push_back(SettingsOfFlags(table_, arguments.flags));
    for (const char* prefix : {"RANKRUN_", "PET_"}) {
      auto variables = SettingsOfVariables(table_, prefix, sources_.environment);
      if (!variables) return std::move(variables).error();
      found_.push_back(std::move(*variables));
    }
    CommandLine line{.settings = {}, .words = std::move(arguments.words), .words_origin = ""};
    if (auto changed = ChangeFolder(); !changed) return std::move(changed).error();
    if (auto read = ReadFile(line); !read) return std::move(read).error();
    auto of_scheduler = SettingsOfScheduler(sources_.scheduler, Settings(table_, found_));
    if (!of_scheduler) return std::move(of_scheduler).error();
    found_.push_back(std::move(*of_scheduler));
    line.settings = Settings(table_, found_);
    return line;
  }

 private:
  Result<void> ChangeFolder() {
    Settings settings(table_, found_);
    auto folder = settings.Text("chdir");
    if (!folder) return {};
    auto changed = sources_.change_folder(*folder);
    if (!changed) return settings.Wrong("chdir", changed.error().message);
    return {};
  }

  Result<void> ReadFile(CommandLine& line) {
    Settings settings(table_, found_);
    auto path = settings.Text("config");
    if (!path) return {};
    auto text = sources_.read_file(*path);
    if (!text) return settings.Wrong("config", text.error().message);
    auto config = ReadConfig(table_, *text, *path);
    if (!config) return std::move(config).error();
    if (line.words.empty() && !config->program.empty()) {
      line.words = std::move(config->program);
      line.words_origin = "\"program\" in " + *path;
    }
    bool changes_folder = !settings.Has("chdir") && config->settings.contains("chdir");
    found_.push_back(std::move(config->settings));
    return changes_folder ? ChangeFolder() : Result<void>();
  }

  const FlagTable table_;
  const Sources& sources_;
  std::vector<SettingsSource> found_;  // from the strongest to the weakest
};

}  // namespace

Result<Arguments> ReadArguments(std::string_view command, std::span<const std::string> arguments) {
  auto split = SplitCommandLine(arguments, command);
  if (!split) return std::move(split).error();
  auto flags = ParseFlags(RankrunFlags(command), split->flags);
  if (!flags) return std::move(flags).error();
  return Arguments{std::move(*flags), std::move(split->words)};
}

Result<CommandLine> CollectSettings(std::string_view command, Arguments arguments,
                                    const Sources& sources) {
  return Collector(command, sources).Collect(std::move(arguments));
}

std::string HelpText(std::string_view command) {
  return FormatHelp(
      RankrunFlags(command), "[flags] program [arguments]",
      "Starts one worker per slot, hosts the store in which they meet, watches them and\n"
      "restarts them when one fails.");
}

}  // namespace rankrun::launcher

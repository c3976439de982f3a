#include "launcher/plan/command_line.h"

#include "launcher/flags/flags.h"
#include "launcher/flags/help.h"
#include "launcher/settings/config_file.h"

namespace rankrun::launcher {
namespace {

class Collector {
 public:
  Collector(std::string_view command, const Sources& sources)
      : table_(RankrunFlags(command)),
        as_torchrun_(HasTorchrunDefaults(command)),
        sources_(sources) {}

  Result<CommandLine> Collect(Arguments arguments) {
    found_.push_back(SettingsOfFlags(table_, arguments.flags));
    for (const char* prefix : {"RANKRUN_", "PET_"}) {
      auto variables = SettingsOfVariables(table_, prefix, sources_.environment);
      if (!variables) return std::move(variables).error();
      found_.push_back(std::move(*variables));
    }
    CommandLine line{
        .settings = {}, .program = std::move(arguments.positionals), .program_origin = ""};
    if (auto changed = ChangeFolder(); !changed) return std::move(changed).error();
    if (auto read = ReadFile(line); !read) return std::move(read).error();
    auto of_scheduler = SettingsOfScheduler(RelevantScheduler(), Settings(table_, found_));
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
    if (line.program.empty() && !config->program.empty()) {
      line.program = std::move(config->program);
      line.program_origin = "\"program\" in " + *path;
    }
    bool changes_folder = !settings.Has("chdir") && config->settings.contains("chdir");
    found_.push_back(std::move(config->settings));
    return changes_folder ? ChangeFolder() : Result<void>();
  }

  // torchrun starts a job of one node unless its user says otherwise, so that
  // each task of a step of a scheduler may be a job.
  Scheduler RelevantScheduler() const {
    Scheduler scheduler = sources_.scheduler;
    if (!as_torchrun_) return scheduler;
    scheduler.nodes.reset();
    scheduler.no_nodes.clear();
    return scheduler;
  }

  const FlagTable table_;
  const bool as_torchrun_;
  const Sources& sources_;
  std::vector<SettingsSource> found_;  // from the strongest to the weakest
};

}  // namespace

Result<Arguments> ReadArguments(std::string_view command, std::span<const std::string> arguments) {
  return ParseArguments(RankrunFlags(command), FlagsEnd::kAtProgram, arguments);
}

Result<CommandLine> CollectSettings(std::string_view command, Arguments arguments,
                                    const Sources& sources) {
  return Collector(command, sources).Collect(std::move(arguments));
}

std::string HelpText(std::string_view command) {
  return FormatHelp(
      RankrunFlags(command), "[flags] program [arguments]",
      "Starts the workers of a distributed job on this node, supervises them, and restarts all\n"
      "of them when one fails.");
}

}  // namespace rankrun::launcher
